-- Four million rows, an index over their names, and look-ups through it: a customer's number is 4,000,000 times the cube of an even
-- random number, so that a tenth of the customers gets almost half of the look-ups.
pragma cache_size = -600000;
create table customer (id integer primary key, name text, city text, note text);
insert into customer
    with recursive n (i) as (select 1 union all select i + 1 from n where i < 4000000)
    select i, printf('customer %08x', i * 2654435761 % 4294967296), printf('city %d', i % 997), 'a note of some forty characters, no more'
    from n;
create index customer_name on customer (name);
select 'loaded';
with recursive n (i, r) as (select 1, 0.5 union all select i + 1, abs(random() % 1000000) / 1e6 from n where i < 500000000)
select sum(length(note)) from n
    cross join customer on name = printf('customer %08x', cast(4000000 * r * r * r + 1 as integer) * 2654435761 % 4294967296);
