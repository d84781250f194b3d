// SPDX-License-Identifier: Apache-2.0
// A live nginx and Ringway agree on every key.
//
// One nginx holds everything: its http servers are the backends and answer with their own name, its stream servers and
// http proxies choose among them with `hash ... consistent`. All on loopback, on addresses that the process id picks,
// so that several runs do not meet. Stream sets hash the client's address, of which 127.0.0.0/8 has plenty; http sets
// hash an argument.
#include "control/ring/chain.h"
#include "tests/lib/ring_set.h"
#include "tests/lib/suite.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#define STREAM_MODULE "/usr/lib/nginx/modules/ngx_stream_module.so"
#define SERVERS_MAX   128u
#define TEXT_MAX      96u
#define HOST_TEXT     32u
#define KEYS          600u // a set
#define PROXY_PORT    7000u
#define START_MS      8000

enum kind {
	STREAM,
	HTTP
};

// A set of backends as an operator writes them for nginx.
struct server_set {
	const char *name;
	enum kind kind;
	enum ring_seed seed;
	uint32_t count;
	char text[SERVERS_MAX][TEXT_MAX];
	uint32_t weight[SERVERS_MAX];
};

static char directory[64];
static unsigned net; // 127.net/256.net%256.x
static struct server_set sets[12];
static unsigned set_count;
static pid_t nginx = -1;

static struct server_set *add_set(const char *name, enum kind kind, enum ring_seed seed)
{
	struct server_set *set = &sets[set_count++];

	*set = (struct server_set){.name = name, .kind = kind, .seed = seed};
	return set;
}

static __attribute__((format(printf, 3, 4))) void add_server(
	struct server_set *set, uint32_t weight, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(set->text[set->count], TEXT_MAX, format, arguments);
	va_end(arguments);
	set->weight[set->count++] = weight;
}

static const char *host(unsigned last)
{
	static char text[4][HOST_TEXT];
	static unsigned turn;
	char *ret = text[turn++ % 4];

	snprintf(ret, HOST_TEXT, "127.%u.%u.%u", 1 + net / 250, 1 + net % 250, last);
	return ret;
}

static void add_stream_sets(void)
{
	struct server_set *set = add_set("two backends", STREAM, RING_SEED_ADDRESS);

	add_server(set, 1, "%s:8001", host(1));
	add_server(set, 1, "%s:8001", host(2));
	set = add_set("hundred equal backends", STREAM, RING_SEED_ADDRESS);
	for (unsigned i = 1; i <= 100; i++)
		add_server(set, 1, "%s:8002", host(i));
	set = add_set("weights 1 to 625", STREAM, RING_SEED_ADDRESS);
	for (unsigned i = 0; i < 12; i++)
		add_server(set, i == 11 ? 625 : 1 + i * i * 3, "%s:8003", host(1 + i));
	set = add_set("ports tell backends apart", STREAM, RING_SEED_ADDRESS);
	for (unsigned i = 0; i < 20; i++)
		add_server(set, 1 + i % 3, "%s:%u", host(1 + i / 4), 8010 + i % 4);
	set = add_set("the same by text", STREAM, RING_SEED_NGINX);
	for (unsigned i = 0; i < 20; i++)
		add_server(set, 1 + i % 3, "%s:%u", host(1 + i / 4), 8010 + i % 4);
	// Brackets and spelling are part of the seed.
	set = add_set("IPv6 in several spellings", STREAM, RING_SEED_NGINX);
	add_server(set, 1, "[::1]:%u", 20000 + net % 8000);
	add_server(set, 2, "[0:0:0:0:0:0:0:1]:%u", 28000 + net % 8000);
	add_server(set, 1, "[::0001]:%u", 36000 + net % 8000);
	add_server(set, 1, "%s:8020", host(1));
	set = add_set("a unix socket", STREAM, RING_SEED_NGINX);
	add_server(set, 1, "unix:%s/a.sock", directory);
	add_server(set, 3, "unix:%s/b.sock", directory);
	add_server(set, 1, "%s:8021", host(1));
}

static void add_http_sets(bool privileged)
{
	struct server_set *set = add_set("http, thirty weighted", HTTP, RING_SEED_ADDRESS);

	for (unsigned i = 0; i < 30; i++)
		add_server(set, 1 + i % 7, "%s:8030", host(1 + i));
	set = add_set("http, a name", HTTP, RING_SEED_NGINX);
	add_server(set, 1, "localhost:%u", 44000 + net % 8000);
	add_server(set, 2, "%s:8031", host(1));
	add_server(set, 1, "%s:8031", host(2));
	if (!privileged)
		return;
	// Without a port nginx connects to 80 but seeds from the address and a zero byte alone.
	set = add_set("http, no port", HTTP, RING_SEED_ADDRESS);
	for (unsigned i = 0; i < 40; i++)
		add_server(set, 1 + i % 2, "%s", host(1 + i));
}

static void write_backend(FILE *file, const char *text)
{
	bool has_port = strrchr(text, ':') != NULL;

	// A name stands for the address that this machine gives it.
	if (strncmp(text, "localhost:", 10) == 0) {
		fprintf(file, "server { listen 127.0.0.1:%s; listen [::1]:%s;", text + 10,
			text + 10);
	} else {
		fprintf(file, "server { listen %s%s;", text, has_port ? "" : ":80");
	}
	fprintf(file, " location / { return 200 \"%s\\n\"; } }\n", text);
}

// Two sets may name the same backend: it listens once.
static bool is_known(const struct server_set *until, unsigned server)
{
	for (const struct server_set *set = sets; set <= until; set++) {
		for (unsigned i = 0; i < set->count && (set < until || i < server); i++) {
			if (strcmp(set->text[i], until->text[server]) == 0)
				return true;
		}
	}
	return false;
}

static void write_upstreams(FILE *file, enum kind kind)
{
	for (unsigned s = 0; s < set_count; s++) {
		if (sets[s].kind != kind)
			continue;
		fprintf(file, "upstream s%u { hash %s consistent;\n", s,
			kind == STREAM ? "$remote_addr" : "$arg_key");
		for (unsigned i = 0; i < sets[s].count; i++)
			fprintf(file, "\tserver %s weight=%u;\n", sets[s].text[i],
				sets[s].weight[i]);
		fprintf(file, "}\n");
		if (kind == STREAM)
			fprintf(file, "server { listen %s:%u; proxy_pass s%u; }\n", host(200),
				PROXY_PORT + s, s);
		else
			fprintf(file,
				"server { listen %s:%u; location / { proxy_pass http://s%u; } }\n",
				host(200), PROXY_PORT + s, s);
	}
}

static void write_configuration(void)
{
	char path[128];

	snprintf(path, sizeof(path), "%s/nginx.conf", directory);
	FILE *file = fopen(path, "w");

	CU_ASSERT_PTR_NOT_NULL_FATAL(file);
	fprintf(file,
		"load_module %s;\ndaemon off;\nmaster_process off;\npid %s/pid;\nerror_log %s/error.log;\n"
		"events { worker_connections 4096; }\nstream {\n",
		STREAM_MODULE, directory, directory);
	write_upstreams(file, STREAM);
	fprintf(file, "}\nhttp {\naccess_log off;\n");
	fprintf(file,
		"client_body_temp_path %s/t; proxy_temp_path %s/t; fastcgi_temp_path %s/t;\n"
		"uwsgi_temp_path %s/t; scgi_temp_path %s/t;\n",
		directory, directory, directory, directory, directory);
	for (unsigned s = 0; s < set_count; s++) {
		for (unsigned i = 0; i < sets[s].count; i++) {
			if (!is_known(&sets[s], i))
				write_backend(file, sets[s].text[i]);
		}
	}
	write_upstreams(file, HTTP);
	fprintf(file, "}\n");
	CU_ASSERT_EQUAL_FATAL(fclose(file), 0);
}

static int connect_from(const char *source, unsigned port)
{
	struct sockaddr_in from = {.sin_family = AF_INET}, to = {.sin_family = AF_INET};
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	int on = 1;

	inet_pton(AF_INET, source, &from.sin_addr);
	inet_pton(AF_INET, host(200), &to.sin_addr);
	to.sin_port = htons((uint16_t)port);
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	if (bind(fd, (struct sockaddr *)&from, sizeof(from)) == 0 &&
		connect(fd, (struct sockaddr *)&to, sizeof(to)) == 0)
		return fd;
	close(fd);
	return -1;
}

// Fetches a page; the backend's name is its body. Returns false when there is none.
static bool fetch(const char *source, unsigned port, const char *key, char ret[TEXT_MAX])
{
	char request[256], answer[2048];
	int fd = connect_from(source, port);
	size_t length = 0;
	ssize_t got;

	if (fd < 0)
		return false;
	int size =
		snprintf(request, sizeof(request), "GET /?key=%s HTTP/1.0\r\nHost: x\r\n\r\n", key);

	if (write(fd, request, (size_t)size) != size)
		size = 0;
	while (size > 0 && length < sizeof(answer) - 1 &&
		(got = read(fd, answer + length, sizeof(answer) - 1 - length)) > 0)
		length += (size_t)got;
	close(fd);
	answer[length] = '\0';
	char *body = strstr(answer, "\r\n\r\n");

	if (body == NULL || strncmp(answer, "HTTP/1.1 200", 12) != 0)
		return false;
	snprintf(ret, TEXT_MAX, "%s", body + 4);
	ret[strcspn(ret, "\r\n")] = '\0';
	return true;
}

static void start(void)
{
	char path[128], backend[TEXT_MAX];

	write_configuration();
	snprintf(path, sizeof(path), "%s/nginx.conf", directory);
	nginx = fork();
	CU_ASSERT_FATAL(nginx >= 0);
	if (nginx == 0) {
		execlp("nginx", "nginx", "-q", "-c", path, "-p", directory, (char *)NULL);
		_exit(127);
	}
	for (unsigned waited = 0; waited < START_MS; waited += 20) {
		if (fetch("127.0.0.1", PROXY_PORT, "x", backend))
			return;
		if (waitpid(nginx, NULL, WNOHANG) == nginx) {
			nginx = -1;
			break;
		}
		usleep(20000);
	}
	snprintf(path, sizeof(path), "sed 's/^/# /' %s/error.log", directory);
	if (system(path) != 0)
		printf("# nginx left no log\n");
	CU_FAIL_FATAL("nginx does not serve");
}

static void stop(void)
{
	char command[128];

	if (nginx > 0) {
		kill(nginx, SIGTERM);
		waitpid(nginx, NULL, 0);
	}
	snprintf(command, sizeof(command), "rm -rf %s", directory);
	if (directory[0] != '\0' && system(command) != 0)
		printf("# %s stays\n", directory);
}

// The set as Ringway sees it. For names and sockets the address is only where packets would go.
static void build(const struct server_set *servers, struct ring_set *set, struct ring_built *built)
{
	ring_set_init(set, RING_V1, RING_V1_POINTS, servers->count);
	set->spec.seed = servers->seed;
	for (uint32_t i = 0; i < servers->count; i++) {
		if (ring_set_address(set, i, servers->text[i]) != 0 ||
			servers->seed == RING_SEED_NGINX) {
			char stand_in[32];

			snprintf(stand_in, sizeof(stand_in), "192.0.2.%u", i + 1);
			ring_set_address(set, i, stand_in);
		}
		snprintf(set->texts[i], sizeof(set->texts[i]), "%s", servers->text[i]);
		set->spec.members[i].weight = servers->weight[i];
	}
	CU_ASSERT_EQUAL_FATAL(ring_built_make(set, built), 0);
}

static unsigned checked;

static void check_set(unsigned number)
{
	const struct server_set *servers = &sets[number];
	struct chain_tables tables;
	struct ring_built built;
	struct ring_set set;
	uint64_t state = suite_seed() + number;
	unsigned agreed = 0;

	build(servers, &set, &built);
	chain_tables_fill(&tables);
	for (unsigned i = 0; i < KEYS; i++) {
		uint32_t bits = (uint32_t)suite_random(&state);
		char key[32], picked[TEXT_MAX] = "?";
		const char *source = "127.0.0.1";

		if (servers->kind == STREAM) {
			snprintf(key, sizeof(key), "127.%u.%u.%u", bits >> 16 & 0xff,
				bits >> 8 & 0xff, 1 + (bits & 0xff) % 254);
			source = key;
		} else {
			snprintf(key, sizeof(key), "%x", bits);
		}
		if (!fetch(source, PROXY_PORT + number, key, picked))
			CU_FAIL("no answer");
		uint32_t crc = ~chain_seed(&tables, UINT32_MAX, key, strlen(key));
		uint32_t backend = ring_member(&built.ring, ring_lookup(&built.ring, crc));

		if (strcmp(picked, servers->text[backend]) == 0)
			agreed++;
		else if (i - agreed < 3)
			printf("# %s: key %s: nginx %s, Ringway %s\n", servers->name, key, picked,
				servers->text[backend]);
	}
	printf("# %s: %u of %u keys agree\n", servers->name, agreed, KEYS);
	CU_ASSERT_EQUAL(agreed, KEYS);
	checked += agreed;
	ring_built_free(&built);
	ring_set_free(&set);
}

static void every_key_agrees_with_nginx(void)
{
	start();
	for (unsigned i = 0; i < set_count; i++)
		check_set(i);
	printf("# %u sets, %u keys\n", set_count, checked);
	CU_ASSERT(set_count >= 8);
	CU_ASSERT(checked >= 2000);
}

static bool may_bind_low_ports(void)
{
	struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(80)};
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	inet_pton(AF_INET, host(1), &address.sin_addr);
	bool may = bind(fd, (struct sockaddr *)&address, sizeof(address)) == 0;

	close(fd);
	return may;
}

int main(void)
{
	static const struct test_case cases[] = {
		{"every_key_agrees_with_nginx", every_key_agrees_with_nginx},
	};
	char template[] = "/tmp/ringway-nginx-XXXXXX";

	if (system("command -v nginx >/dev/null") != 0 || access(STREAM_MODULE, R_OK) != 0) {
		printf("1..0 # SKIP nginx with its stream module is not installed\n");
		return 0;
	}
	net = (unsigned)getpid() % 60000;
	if (mkdtemp(template) == NULL)
		return 1;
	snprintf(directory, sizeof(directory), "%s", template);
	atexit(stop);
	signal(SIGPIPE, SIG_IGN);
	add_stream_sets();
	add_http_sets(may_bind_low_ports());
	return SUITE_RUN("nginx", cases);
}
