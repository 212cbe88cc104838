-- What sqlite.sql asks again and again.
SELECT sum(length(body)) FROM a;
SELECT sum(length(body)) FROM b;
SELECT count(*) FROM a WHERE k >= 0;
