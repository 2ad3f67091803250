# A private PostgreSQL server for tests: tells its folder, and then that it is ready. It is stopped and removed when standard input ends.
set -e
exec 2>&1
bin=$(ls -d /usr/lib/postgresql/*/bin 2>/dev/null | tail -1)
if [ ! -x "$bin/initdb" ]; then
    echo "PostgreSQL's server binaries (Debian: apt install postgresql) are needed for these tests"
    exit 1
fi
port=$1
dir=$(mktemp -d /var/tmp/loadline-test-XXXXXX)
chmod 755 "$dir"
echo "$dir"
cd "$dir"
$bin/initdb -D data -k -A trust -U postgres -E UTF8 --no-locale >initdb.log
openssl req -x509 -newkey rsa:2048 -nodes -days 2 -keyout ca.key -out ca.crt -subj /CN=loadline-test-ca >openssl.log 2>&1
openssl req -newkey rsa:2048 -nodes -keyout server.key -out server.csr -subj /CN=localhost >>openssl.log 2>&1
printf 'subjectAltName=DNS:localhost\n' > san
openssl x509 -req -in server.csr -CA ca.crt -CAkey ca.key -CAcreateserial -days 2 -extfile san -out server.crt >>openssl.log 2>&1
openssl req -x509 -newkey rsa:2048 -nodes -days 2 -keyout other.key -out other.crt -subj /CN=other-ca >>openssl.log 2>&1
chmod 600 server.key; chmod 644 *.crt
cat >> data/postgresql.conf <<C
listen_addresses = '127.0.0.1'
port = $port
unix_socket_directories = '$dir'
max_connections = 60
max_worker_processes = 16
max_parallel_workers = 16
shared_buffers = 64MB
max_wal_size = 2GB
ssl = on
ssl_cert_file = '$dir/server.crt'
ssl_key_file = '$dir/server.key'
autovacuum = off
C
cat > data/pg_hba.conf <<C
local all all trust
host all scram 127.0.0.1/32 scram-sha-256
host all md5 127.0.0.1/32 md5
host all plain 127.0.0.1/32 password
host all postgres 127.0.0.1/32 trust
C
$bin/pg_ctl -D data -l log -w start >pg_ctl.log
psql -qX -v ON_ERROR_STOP=1 -h "$dir" -p $port -U postgres >psql.log 2>&1 <<'C'
CREATE ROLE scram LOGIN PASSWORD 's:c\r@m pässword';
CREATE ROLE plain LOGIN PASSWORD 'plain';
SET password_encryption = md5;
CREATE ROLE md5 LOGIN PASSWORD 'md5secret';
CREATE ROLE limited LOGIN CONNECTION LIMIT 5;
CREATE ROLE nothba LOGIN;
C
trap '' INT TERM
echo ready
cat >/dev/null
$bin/pg_ctl -D data -m immediate -w stop >/dev/null || true
cd /
rm -rf "$dir"
