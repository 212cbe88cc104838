-- A table in memory, filled on node 1; then, on node 0, a smaller one, and queries that go through both.
CREATE TABLE a (id INTEGER PRIMARY KEY, k INTEGER, body TEXT);
INSERT INTO a WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 60000)
  SELECT i, i * 7919 % 60000, hex(zeroblob(100)) FROM n;
CREATE INDEX a_k ON a (k);
.system point loaded $PPID
.system move 1 $PPID
CREATE TABLE b (id INTEGER PRIMARY KEY, body TEXT);
INSERT INTO b SELECT id, body FROM a WHERE id % 2 = 0;
.system point moved $PPID
.read /queries.sql
.read /queries.sql
.read /queries.sql
.read /queries.sql
.read /queries.sql
.read /queries.sql
.read /queries.sql
.read /queries.sql
.read /queries.sql
.read /queries.sql
.read /queries.sql
.read /queries.sql
.read /queries.sql
.read /queries.sql
.read /queries.sql
.read /queries.sql
.read /queries.sql
.read /queries.sql
.read /queries.sql
.read /queries.sql
.read /queries.sql
.read /queries.sql
.read /queries.sql
.read /queries.sql
.read /queries.sql
.read /queries.sql
.read /queries.sql
.read /queries.sql
.read /queries.sql
.read /queries.sql
.read /queries.sql
.read /queries.sql
.read /queries.sql
.read /queries.sql
.read /queries.sql
.read /queries.sql
.read /queries.sql
.read /queries.sql
.read /queries.sql
.read /queries.sql
.system point end $PPID
