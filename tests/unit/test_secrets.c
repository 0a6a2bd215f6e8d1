#include "run/secrets.h"

#include "unit.h"

static char masked[1 << 18];

/* Arguments are separated by \1 in the tables. */
static const char *arguments(const char *text)
{
    static char copy[1 << 17];
    size_t length = strlen(text);
    for (size_t i = 0; i < length; i++)
        copy[i] = (char)(text[i] == '\1' ? '\0' : text[i]);
    secrets_mask_arguments(copy, length, masked, sizeof masked);
    return masked;
}

static const char *value(const char *text)
{
    secrets_mask_value("X", 1, text, masked, sizeof masked);
    return masked;
}

static const char *lines(const char *text)
{
    secrets_mask_lines(text, strlen(text), masked, sizeof masked);
    return masked;
}

/* Names, most of them from the rules of secret scanners. */
/* clang-format off */
static const char *const NAMES[] = {
    "AWS_SECRET_ACCESS_KEY", "AWS_ACCESS_KEY_ID", "AWS_SESSION_TOKEN", "GITHUB_TOKEN", "GH_PAT",
    "GITLAB_PRIVATE_TOKEN", "CI_JOB_JWT_V2", "HF_TOKEN", "hf_tokens", "TOKEN_FOR_CI",
    "HF_TOKEN_READ", "PASS_PHRASE", "HUGGING_FACE_HUB_TOKEN", "WANDB_API_KEY", "wandb-api-key",
    "KAGGLE_KEY", "NPM_TOKEN", "_authToken", "NPM_CONFIG__AUTH", "PYPI_PASSWORD", "DOCKER_AUTH",
    "auths", "SENTRY_DSN", "DATADOG_APP_KEY", "NEW_RELIC_LICENSE_KEY", "AccountKey",
    "AZURE_STORAGE_CONNECTION_STRING", "AZURE_CLIENT_SECRET", "SharedAccessSignature", "sig",
    "X-Amz-Signature", "X-Amz-Security-Token", "AZURE_SAS", "GOOGLE_APPLICATION_CREDENTIALS",
    "private_key_id", "clientSecret", "refresh_token", "accessToken", "id_token", "MODAL_TOKEN_ID",
    "SLACK_WEBHOOK_URL", "STRIPE_SECRET_KEY", "NGROK_AUTHTOKEN", "PGPASSWORD", "MYSQL_PWD",
    "REDISCLI_AUTH", "SSHPASS", "db_pass", "dbPw", "db.pwd", "RABBITMQ_DEFAULT_PASS",
    "LDAP_BIND_PW", "GPG_PASSPHRASE", "SECRET_KEY_BASE", "ENCRYPTION_KEY", "SIGNING_KEY_PROD",
    "KEY_FOR_CI", "ssh-key", "masterKey", "mykey", "appkeys", "sessionKey", "SESSION", "PHPSESSID",
    "connect.sid", "Cookie", "Set-Cookie", "Authorization", "Proxy-Authorization", "X-Api-Key",
    "X-Auth-Token", "api_key", "apikey", "APIKey", "api_key2", "API key", "TOKEN_BASE64", "passwd",
    "PASSWORD_FILE", "storepass", "bearer", "SLURM_JWT", "PMIX_AUTH", "MPICH_COOKIE", "OAUTH2",
    "otp", "TOTP_SEED", "OMPI_MCA_orte_precondition_transports", "FI_CREDENTIALS", "aws-creds",
    "motDePasse", "PSK", "mnemonic", "MAX_API_TOKEN", "ADMIN_TOKEN", "ONE_PASSWORD", "RUBY_KEY",
    "PHONE_PASS", "TOKEN_DROPBOX", "TOKEN_PERSONAL"};
static const char *const NO_NAMES[] = {
    "tokenizer", "TOKENIZERS_PARALLELISM", "max_tokens", "num-tokens", "seq-tokens", "numTokens",
    "pad_token_id", "moe-token-dispatcher-type", "tokens-per-batch", "key-size", "KEYFRAME",
    "num-key-value-heads", "sort_key", "public_key", "monkey", "keyboard", "UCX_IB_PKEY", "mr_rkey",
    "UCX_KEEPALIVE_INTERVAL", "MPIR_CVAR_CH4_OFI_ENABLE_MR_PROV_KEY", "OMPI_MCA_opal_signal",
    "OMPI_MCA_plm_rsh_pass_environ_mca_params", "orte_top_session_dir", "author", "authors",
    "passes", "num_passes", "bypass", "compass", "OMP_PROC_BIND", "OMPI_MCA_coll", "FI_PROVIDER",
    "I_MPI_PIN_DOMAIN", "SLURM_JOB_NODELIST", "NCCL_SOCKET_IFNAME", "design", "path", "signal",
    "autotune", "autotp-size", "case_sensitive", "seed", "salt", "basic_linear", "user", "value",
    "keep", "stokes", ""};

/* The secret is "hunter2". */
static const char *const FORMS[] = {
    /* assignments and lists */
    "HF_TOKEN=hunter2", "HF_TOKEN = hunter2", "HF_TOKEN := hunter2", "HF_TOKEN: hunter2",
    "HF_TOKEN:hunter2", "token=hunter2 x,hunter2", "a=1,token=hunter2", "a=1;token=hunter2;b=2",
    "a=1,token=hunter2 hunter2,b=2", "x token=hunter2 y", "x token=a,hunter2=hunter2 y",
    "a:1,token:hunter2,b:2", "HF_TOKEN_READ=hunter2", "TOKEN_FOR_CI=hunter2",
    "PASS_PHRASE='a hunter2'", "token='a' 'hunter2'", "token=\"a\"'hunter2'", "token=a\\ hunter2",
    "token=a'b 'hunter2", "token=$'a hunter2'", "token='a\\' hunter2", "token=\"hunter2",
    "don't token=hunter2", "token=\"\"\"a hunter2\"\"\"", "x | token=hunter2", "TOKEN1=hunter2",
    "--a=token=hunter2 hunter2", "token+=hunter2", "token?=hunter2", "token ||= hunter2",
    "token <- hunter2", "token->hunter2", "token|hunter2", "token;hunter2", "token,hunter2",
    "token~hunter2", "token\thunter2", "token\357\274\232hunter2", "\303\244 token=\303\244hunter2",
    "token \342\200\234hunter2\342\200\235", "pwd hunter2", "my password is hunter2",
    "hunter2 is my password", "hunter2  # password", "hunter2 -> token",
    "name,password\nbob,hunter2", "user password\nbob hunter2", "p\303\244ss \"token\"  hunter2",
    "pass\342\200\213word=hunter2", "pass%77ord=hunter2", "pAsSwOrD=hunter2", "'API key': hunter2",
    "token%3Dhunter2", "https%3A%2F%2Fh%3Fa%3D1%26token%3Dhunter2", "token=%68hunter2",
    "LR=1;T=hunter2;export HF_TOKEN=$T", "T=hunter2; login --token $T", "token=x&code=hunter2",
    /* options */
    "--token hunter2", "x --token hunter2 y", "x --token -hunter2 y", "x --token 'a hunter2' y",
    "--token=hunter2 x", "x --token \"a \\\" hunter2\" y", "x '--token' 'hunter2' y",
    "--tokens 1,2,hunter2", "--tokens 1 2 hunter2", "--api-keys a hunter2", "-password hunter2",
    "/password:hunter2", "/password hunter2", "/user:me /pass:hunter2", "--X-Token=hunter2",
    "--wandb.api_key hunter2", "-Dspring.datasource.password=hunter2", "--password-file hunter2",
    "don't --token a'b hunter2", "-passin pass:hunter2", "--set auth.rootPassword=hunter2",
    "--from-literal=password=hunter2", "-e 'POSTGRES_PASSWORD=hunter2'", "--env HF_TOKEN=hunter2",
    "--user me:hunter2", "--proxy-user me:hunter2 x", "--header 'PRIVATE-TOKEN: hunter2'",
    "-o password=hunter2", "-x HF_TOKEN=hunter2 ./a",
    /* programs */
    "login u password hunter2", "machine m login u password hunter2", "curl -u me:hunter2 h",
    "curl --user me:hunter2 h", "mysql -u root -phunter2 db", "/usr/bin/mysql -phunter2",
    "sshpass -p hunter2 ssh h", "docker login -u me -p hunter2 r",
    "echo hunter2 | docker login --password-stdin r", "docker login -p hunter2 --password-stdin",
    "echo me:hunter2 | chpasswd", "tee ~/token <<< hunter2", "echo hunter2 > ~/.hf/token",
    "PGPASSWORD=hunter2 psql -h h", "redis-cli -h h -a hunter2", "htpasswd -b f u hunter2",
    "aws configure set aws_secret_access_key hunter2", "gh secret set X --body hunter2",
    "kubectl create secret generic x --from-literal=k=hunter2", "vault kv put a/b c=hunter2",
    "aws ssm put-parameter --value hunter2 --name HF_TOKEN", "openssl enc -k hunter2",
    "npm config set //r/:_authToken hunter2", "wandb login hunter2", "ldapsearch -w hunter2",
    "expect -c 'expect password: {send hunter2}'",
    "git -c http.extraHeader='AUTHORIZATION: basic hunter2' clone x", "lftp -u me,hunter2 h",
    "git credential approve <<< password=hunter2", "read TOKEN <<E\nhunter2\nE",
    "mysql --password <<E\nhunter2\nE", "export \\\n  HF_TOKEN=\\\n  hunter2",
    "train --token \\\n  hunter2", "env HF_TOKEN=hunter2 python x", "setenv HF_TOKEN hunter2",
    "set HF_TOKEN hunter2", "$env:HF_TOKEN = 'hunter2'", "smbclient -U u%hunter2",
    "sh -c \"token='hunter2 hunter2' x\"", "sh -c 'x \"token=a hunter2\"'",
    "sh -c \"curl -H \\\"X-Token: Bearer hunter2\\\" x\"", "x=$(echo hunter2) token=$x y",
    "sh -c 'x \"{\\\"token\\\": \\\"hunter2\\\"}\"'", "token='hun'; token=$token'hunter2'",
    /* code */
    "os.environ.setdefault('HF_TOKEN','hunter2')", "os.environ[\"HF_TOKEN\"] = \"hunter2\"",
    "os.environ['HF_TOKEN']=(\n 'hunter2')", "os.putenv('HF_TOKEN', 'hunter2')",
    "login(token='hunter2')", "huggingface_hub.login('hunter2')", "t='hunter2'; login(token=t)",
    "t = 'hunter2'\nos.environ['HF_TOKEN'] = t", "if token == 'hunter2': x",
    "f(a, token='hunter2', b=2)", "f(token=hunter2, b=2)", "dict(token='hunter2')",
    "getpass.getpass = lambda: 'hunter2'", "ENV[\"HF_TOKEN\"] ||= \"hunter2\"",
    "'token' => 'hunter2'", "[\"--token\", \"hunter2\"]", "(\"hunter2\", \"HF_TOKEN\")",
    "{'hunter2': 'HF_TOKEN'}", "define('DB_PASSWORD', 'hunter2');", "#define TOKEN \"hunter2\"",
    "a\\ntoken=hunter2", "\"x\\ntoken: hunter2\"", "process.env.TOKEN = `hunter2`",
    "Authenticator.setDefault(new A(\"u\", \"hunter2\"))", "std::string token = {\"hunter2\"}",
    /* JSON, YAML, INI, XML, TOML, ... */
    "{\"token\": \"hunter2\"}", "{\"a\": 1, \"token\":\"hunter2\", \"b\": 2}",
    "{'a': {'token': 'hunter2 hunter2'}}", "{a: 1, token: hunter2 hunter2, b: 2}",
    "{\"credentials\": {\"a\": \"x\", \"b\": [\"hunter2\"]}}", "{\"token\": \"a\\\"b hunter2\"}",
    "{\"tokens\": [\"x\", \"hunter2\"], \"b\": 2}", "{\"token\": \"hunter2",
    "[{\"name\": \"HF_TOKEN\", \"value\": \"hunter2\"}]",
    "{\"value\":\"hunter2\",\"name\":\"HF_TOKEN\"}", "{\"value\":\"hunter2\",\"secret\":true}",
    "{\"value\": \"hunter2\", \"key\": \"HF_TOKEN\"}", "name=HF_TOKEN,value=hunter2",
    "value=hunter2,name=HF_TOKEN", "{\n \"value\": \"hunter2\",\n \"name\": \"HF_TOKEN\"\n}",
    "{\"token\":\n  \"hunter2\"}", "{\"tokens\": [\"a\",\n\"hunter2\"]}",
    "{\"auths\":{\"r\":{\"x\":\"hunter2\"}}}", "<add key=\"password\" value=\"hunter2\"/>",
    "<add value=\"hunter2\" key=\"password\"/>", "<a><token>hunter2</token></a>",
    "<token>\n  hunter2\n</token>", "<token>a\nhunter2</token>", "<token enc='x'>hunter2</token>",
    "<entry key=\"password\">hunter2</entry>", "<property><name>password</name><value>hunter2",
    "<![CDATA[token=hunter2]]>", "[secrets] foo = hunter2", "[secrets]\nfoo = hunter2",
    "[auth]\nx = 1\ny = hunter2", "[db]\npassword = hunter2", "password\nhunter2",
    "password:\nhunter2", "password = a\\\nb=hunter2", "password = \"\"\"\na=hunter2\n\"\"\"",
    "credentials:\n  a: 1\n  b: hunter2", "credentials:\n- a: hunter2", "key: |\n  hunter2\nb: 1",
    "- name: HF_TOKEN\n  value: hunter2", "- value: hunter2\n  name: HF_TOKEN",
    "a:\r\n  password:\r\n    hunter2\r\n", "/etc/token: a hunter2", "password:\n\n\n  hunter2",
    "default\n login u\n password hunter2", "-----BEGIN RSA PRIVATE KEY-----\nhunter2",
    "# HF_TOKEN: hunter2", "# HF_TOKEN:\nhunter2", "# token <<\n  hunter2",
    "token: !!binary hunter2", "token: &anchor hunter2",
    /* headers, URLs, connection strings */
    "Authorization: Bearer hunter2", "X-Api-Key: hunter2", "Proxy-Authorization: Basic hunter2",
    "Authorization: Digest a=\"b\", response=\"hunter2\"", "Authorization: AWS4 x, y=hunter2",
    "Cookie: a=b; c=hunter2", "Set-Cookie: sid=hunter2; Path=/", "Authorization:\r\n hunter2",
    "curl -H 'X-Token: a hunter2' https://host", "https://h/x?a=1&access_token=hunter2&b=2",
    "https://h/x?sig=hunter2#b", "https://h/#token=hunter2", "https://h/x?code=hunter2",
    "postgres://u:hunter2@h/x", "postgres://u:a/hunter2@h/x", "sql://:hunter2@h", "u:hunter2@h",
    "--user=u:hunter2@h", "https://hunter2@github.com/x.git", "git+https://hunter2@h/x.git@v1",
    "http://a,http://u:p@hunter2@b:2", "http://u:a?hunter2@h", "[\"http://u:hunter2@h\"]",
    "Server=h;Uid=u;Pwd=hunter2;Port=1", "host=h password=hunter2 port=5", "amqp://u:hunter2@h",
    "DefaultEndpointsProtocol=https;AccountKey=hunter2==", "jdbc:x:@h?user=u&password=hunter2",
    "mongodb+srv://u:hunter2@h/?x=1", "hooks.slack.com/services/T0/B0/hunter2",
    "https://discord.com/api/webhooks/1/hunter2", "redis://:hunter2@h:6379/0",
    "//r.npmjs.org/:_authToken=hunter2", "sqlplus u/hunter2@db",
    /* arguments */
    "t\1--token\1hunter2", "t\1--token=x hunter2\1y", "t\1token\1=\1hunter2", "t\1token=\1hunter2",
    "t\1--password\1-S\1x\1hunter2", "t\1--tokens\0011\0012\1hunter2", "t\1password\1hunter2\1x",
    "t\1-H\1Authorization: Bearer\1hunter2", "sshpass\1-p\1hunter2\1ssh", "mysql\1-phunter2\1db",
    "t\1curl\1-u\1me:hunter2", "docker\1login\1-u\1me\1-p\1hunter2", "t\1/password\1hunter2",
    "gh\1secret\1set\1X\1--body\1hunter2", "t\1--name\1HF_TOKEN\1--value\1hunter2",
    "t\1--value\1hunter2\1--name\1HF_TOKEN", "sh\1-c\1HF_TOKEN=a hunter2\1x",
    "python3\1-c\1import os\nt='hunter2'\nos.environ['HF_TOKEN']=t", "curl\1-u\1me:hunter2\1h",
    "t\1--api-key2\1hunter2", "t\1name=HF_TOKEN\1value=hunter2", "t\1--env\1HF_TOKEN\1hunter2"};

/* By their shape alone. */
static const char *const RANDOM[] = {
    "AKIAIOSFODNN7EXAMPLE", "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY",
    "ghp_0123456789abcdefghij0123456789abcdef", "github_pat_11ABCDEFG0abcdefghijkl_mnopQRSTuvwx",
    "hf_abcdefghijklmnopqrstuvwxyzABCDEFGH", "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",
    "sk-proj-abcd_0123456789abcdef0123", "xoxb-123456789012-123456789012-abcdefghijkl",
    "xai-a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6", "wandb_v1_aB3dE5gH7iJ9kL1mN3oP5qR7sT9u",
    "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2lnbmF0dXJl", "glpat-0123456789abcdefghij",
    "AIzaSyA0123456789abcdefghijklmnopqrstuv", "SG.aB3dE5gH7iJ9kL1mN3oP5q.R7sT9uV1wX3yZ5aB7cD9",
    "npm_a1b2c3d4e5f6g7h8i9j0a1b2c3d4e5f6g7h8", "dop_v1_9f86d081884c7d659a2feaa0c55ad015a3bf4f1b",
    "9f86d081884c7d659a2feaa0c55ad015", "9F86D081884C7D659A2FEAA0C55AD015A3BF4F1B",
    "ABC-DEF1234ghIkl-zyx57W2v1u123ew11", "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567",
    "aB3-dE5_gH7iJ9kL1-mN3oP5qR7_sT9uV1wX3", "Zm9vYmFyYmF6cXV4MTIzNDU2Nzg5MA", "aB3dE5gH7iJ9kL1m",
    "dGhlIHNlY3JldCBpcyBodW50ZXIy+/abcQ", "-----BEGIN PRIVATE KEY-----\nMIIEvQ\n-----END",
    /* just long enough */
    "a234567890123456789b", "abcdefghijklmnopqrstuvwx", "aB1cD2eFgggHhh3i", "aaaBaaaBaaaB3a3a",
    "aaaaaaB-aaaaaaB-aaaaaaB-aaaaaaB-aB"};

static const char *const READABLE[] = {
    "", "self,vader  a=b @ : :// ", "--batch-size 64 --lr 0.1", "--tokenizer gpt2 --vocab 50257",
    "--num-tokens 2048", "max_tokens=512", "--seq-tokens 4096", "--key-size 16", "KEYFRAME=3",
    "{\"max_tokens\": 512, \"total_tokens\": 1e6}", "pad_token=<pad>", "--eos-token x",
    "--moe-token-dispatcher-type alltoall", "--num-key-value-heads 4", "--tokens-per-batch 4096",
    "passes=3 author=me keyboard=de monkey=1 compass=2 bypass=3 -p x", "OMPI_COMM_WORLD_SIZE=4",
    "OMP_PLACES=cores(4) OMP_PROC_BIND=close", "https://host:8080/a/b", "pw.x -in scf.in",
    "git@github.com:org/repo.git", "me@host:/x", "tcp://a:1,tcp://b:2", "mlx5_0:1,mlx5_1:1",
    "prterun-h-12@0.0;tcp4://127.0.0.1:36543", "3324182528.0;tcp://172.17.0.2,10.0.0.1:40123",
    "ppr:2:node:PE=1", "quiet,mask_cpu:0x0000000000000000000000ff0000ff,0x2", "2(x3),1",
    "don't \"x 'y", "sk-learn-pipeline-v2 hf_transformers npm_config_x eyJ", "a\\b \\\\ \\",
    "\303\244 \xff \x01 %20 %zz", "-----BEGIN CERTIFICATE-----\nabc\n-----END CERTIFICATE-----",
    "<a key-frames=\"3\"/>", "{\"a\": [1, {\"b\": \"c d\"}], 'e': None}", "((((((((((((((((((((x",
    "GPU-8932f937-d72c-4106-c12f-20bd9faed9f6,MIG-8932f937-d72c-4106-c12f-20bd9faed9f6", "0,1,2,3",
    "/nix/store/a1b2c3d4e5f6g7h8i9j0k1l2m3n4o5p6-openmpi-4.1.6/lib:/usr/lib",
    "/opt/spack/linux-debian12/gcc-12/openmpi-4.1.6-qz5vxw2k3abcdefghij0123456789abc/bin/x",
    "./runs/4cb06995a1b2c3d4e5f6a7b8c9d0e1f2a3b4c5d6/x", "~/x_0123456789abcdefghij0123456789abcdef",
    "train.py --data /data/shard-00001-of-01024.bin", "2026-11-28T18:39:53.123456 20261128T183953Z",
    "checkpoints/global_step1000/mp_rank_00_model_states.pt", "ckpt_20261128_183953_iter0000100.pt",
    "run-20261128_183953-4711", "meta-llama/Meta-Llama-3.1-8B-Instruct-bf16-tp2-pp4",
    "mistralai/Mixtral-8x7B-Instruct-v0.1", "lr0.1_bs64_tp8_pp2_dp4_ep1_seed42", "resnet50_v1.5",
    "MPIR_Allreduce_intra_recursive_doubling", "ReduceScatterBlockIntraAlgorithm", "gpt2-xl",
    "torch.distributed.elastic.multiprocessing.DistributedSampler", "NVIDIA-A100-SXM4-80GB",
    "ip-10-0-0-12.eu-west-1.compute.internal", "node[0001-0128]", "x1000c0s0b0n0,x1000c0s1b0n0",
    "a23456789012345678b", "abcdefghijklmnopqrstuvw", "aB1cD2eFgggHhh3", "aaaBaaaBaaaBaa3a",
    "aaaaaaB-aaaaaaB-aaaaaaB-aaaaaaB-aaB", "login01.cluster:8080", "train-job-7d9f8b6c5d-x2x4z",
    "1764355193123456789", "rc_mlx5,ud_mlx5", "tuned:alltoall_algorithm=3;han:priority=40",
    "cpu=4,mem=8G,gres/gpu:a100=2", "104x104x104", "lmp -in in.lj -sf gpu -v x 8 -v y 4",
    "HPL.out N=40000 NB=192 P=2 Q=2", "3 # ID\n8 # size\n", "t\1--seed\00142\1--salt\0010.15",
    "t\1./session_bench\0014", "t\1--data\1/data/tokens\1-n\0014",
    "t\1-u\1train.py\1--user-data\1x", "python3\1train_tokens.py\1data.bin\1--lr\0010.1"};

/* Texts beside a secret are shown, in a value and as the only argument, or in a file. */
static const char *const SHOWN[][2] = {
    {"FOO=1,HF_TOKEN=S,BAR=2", "FOO=1,HF_TOKEN=***"},
    {"https://h/x?a=1&b=2 y", "https://h/x?*** y"},
    {"{\"lr\": 1, \"password\": \"S\"}", "{\"lr\": 1, \"password\": \"***"},
    {"Authorization: Bearer S", "Authorization: ***"},
    {"train --lr 1 --password S", "train --lr 1 --password ***"},
    {"x --access-key-id S", "x --access-key-id ***"},
    {"--db=postgres://u:p@host/x", "--db=postgres://***@host/x"},
    {"x --y=ghp_0123456789abcdefghij0123456789abcdef z", "x --y=*** z"},
    {"t\1--api-key=z\1--password\1x y\1z\1--lr\0011\1-n\0012",
     "t --api-key=*** --password *** *** --lr 1 -n 2"},
    {"t\1api_key=z\1--token\1--lr\0011", "t api_key=*** --token --lr 1"},
    {"t\1--mode\1auth\1x\1--lr\0011", "t --mode auth *** --lr 1"},
    {"login\1u\1--x\1S", "login *** *** ***"},
    {"t\1--password", "t --password"}};
static const char *const SHOWN_LINES[][2] = {
    {"a: 1\npassword: S S\ncredentials:\n  a: S\n\n  b: S\nc: 3\n",
     "a: 1\npassword: ***\ncredentials:\n***\nc: 3\n"},
    {"password = S\n  b = S\nlr = 6\n", "password = ***\nlr = 6\n"},
    {"{\"a\": 1,\n\"token\": \"S\",\n\"b\": 2}", "{\"a\": 1,\n\"token\": \"***\n"},
    {"# my token\n1 2 3\n", "***\n1 2 3\n"},
    {"a: 1\nmode: token\n", "***"}};
/* clang-format on */

#define EACH(ROW, TABLE)                             \
    const char *const *ROW = (TABLE);                \
    ROW < (TABLE) + sizeof(TABLE) / sizeof *(TABLE); \
    ROW++

TEST(a_name_suggests_a_secret)
{
    for (EACH(name, NAMES)) {
        unit_context = *name;
        CHECK(secrets_named(*name, strlen(*name)));
        secrets_mask_value(*name, strlen(*name), "7", masked, sizeof masked);
        CHECK_TEXT(masked, "***");
    }
    for (EACH(name, NO_NAMES)) {
        unit_context = *name;
        CHECK(!secrets_named(*name, strlen(*name)));
    }
}

static void replaced(const char *text, const char *secret, char *to)
{
    while (*text)
        if (strncmp(text, "hunter2", 7) == 0) {
            to = stpcpy(to, secret);
            text += 7;
        } else
            *to++ = *text++;
    *to = '\0';
}

TEST(no_secret_is_shown_in_any_form)
{
    static const char *const SECRETS[] = {"hunter2", "4711", "qXz/w:=7", "\303\244\303\266"};
    for (EACH(form, FORMS))
        for (EACH(secret, SECRETS)) {
            char text[1024];
            replaced(*form, *secret, text);
            unit_context = text;
            CHECK(!strstr(arguments(text), *secret));
            if (strchr(text, '\1'))
                continue;
            CHECK(!strstr(value(text), *secret));
            CHECK(!strstr(lines(text), *secret));
        }
}

TEST(words_that_look_random_are_masked)
{
    for (EACH(word, RANDOM)) {
        char text[256];
        snprintf(text, sizeof text, "x --y=%s", *word);
        unit_context = text;
        CHECK(strcmp(value(text), "x --y=***") == 0 || strcmp(value(text), "***") == 0);
    }
}

TEST(what_is_no_secret_stays_as_it_is)
{
    for (EACH(text, READABLE)) {
        char spaced[256];
        size_t length = strlen(*text);
        for (size_t i = 0; i <= length; i++)
            spaced[i] = (char)((*text)[i] == '\1' ? ' ' : (*text)[i]);
        unit_context = *text;
        CHECK_TEXT(arguments(*text), spaced);
        if (strchr(*text, '\1'))
            continue;
        CHECK_TEXT(value(*text), *text);
        CHECK_TEXT(lines(*text), *text);
    }
}

TEST(the_rest_is_shown_beside_a_secret)
{
    for (size_t i = 0; i < sizeof SHOWN / sizeof *SHOWN; i++) {
        CHECK_TEXT(arguments(SHOWN[i][0]), SHOWN[i][1]);
        if (!strchr(SHOWN[i][0], '\1'))
            CHECK_TEXT(value(SHOWN[i][0]), SHOWN[i][1]);
    }
    for (size_t i = 0; i < sizeof SHOWN_LINES / sizeof *SHOWN_LINES; i++)
        CHECK_TEXT(lines(SHOWN_LINES[i][0]), SHOWN_LINES[i][1]);
}

TEST(what_does_not_fit_is_cut)
{
    char little[8];
    secrets_mask_arguments("train --password x", 18, little, sizeof little);
    CHECK_TEXT(little, "train -");
    secrets_mask_arguments("train\0--password\0x", 18, little, 1);
    CHECK_TEXT(little, "");
}

static uint32_t random_number(void)
{
    static uint64_t state = 1;
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(state >> 33);
}

/* Pieces of forms in any order, and any bytes; exact sizes, so that a sanitizer sees each byte
 * beyond. */
TEST(any_text_is_read_within_its_bounds)
{
    enum { FORM_COUNT = sizeof FORMS / sizeof *FORMS, TEXTS = 20000 };
    for (int i = 0; i < TEXTS; i++) {
        char text[1024];
        size_t used = 0, room = random_number() % 64 + 1;
        for (int piece = random_number() % 8; piece > 0; piece--) {
            const char *form = FORMS[random_number() % FORM_COUNT];
            size_t length = strlen(form), from = random_number() % length;
            length = random_number() % (length - from) + 1;
            memcpy(text + used, form + from, length);
            used += length;
            text[used++] = (char)random_number();
        }
        text[used] = '\0';
        char *exact = malloc(used + 1), *little = malloc(room);
        memcpy(exact, text, used + 1);
        unit_context = exact;
        secrets_mask_value(exact, used / 2, exact, little, room);
        CHECK(strlen(little) < room);
        exact = realloc(exact, used + !used);
        secrets_mask_lines(exact, used, little, room);
        CHECK(strlen(little) < room);
        secrets_mask_arguments(exact, used, little, room);
        CHECK(strlen(little) < room);
        free(exact);
        free(little);
    }
}

/* No part of a text is read again and again: in a text of one piece repeated this would take
 * minutes. */
TEST(the_longest_text_is_masked_at_once)
{
    static const char *const PIECES[] = {"\\",  "'", "\"", "token=",   "a:", "=a:",    "://",
                                         "api", "(", "@",  "token",    " ",  "token ", ",",
                                         "a\n", "%", "\1", "token:\n", "a",  "a0",     "value "};
    static char text[1 << 17];
    for (EACH(piece, PIECES)) {
        size_t length = strlen(*piece);
        for (size_t at = 0; at + length < sizeof text; at += length)
            memcpy(text + at, *piece, length + 1);
        unit_context = *piece;
        lines(text);
        arguments(text);
        value(text);
    }
}
