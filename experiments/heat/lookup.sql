\set aid 1 + permute(random_zipfian(1, 100000 * :scale, 1.05) - 1, 100000 * :scale)
select abalance from pgbench_accounts where aid = :aid;
