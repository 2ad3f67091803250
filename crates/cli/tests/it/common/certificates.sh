# An authority, a certificate of it for 'localhost', and another authority, in this folder. Only the server has a key of RSA: such keys
# take long to make.
set -e
for name in ca other; do
    openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 3650 -subj "/CN=$name" -keyout "$name.key" -out "$name.crt"
done
openssl req -newkey rsa:2048 -nodes -subj /CN=localhost -keyout server.key -out server.csr
echo subjectAltName=DNS:localhost > ext
openssl x509 -req -days 3650 -CAcreateserial -in server.csr -CA ca.crt -CAkey ca.key -extfile ext -out server.crt
chmod -R a+rX .
