// SPDX-License-Identifier: Apache-2.0
// The server over a real socket: it runs in a child process, the test is its peer.
#include "control/daemon/connection.h"

#include "control/cli/client.h"
#include "tests/lib/suite.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define WAIT_MS   5000
#define LINE_MAX_ 4096u

static char directory[] = "/tmp/ringway-server-XXXXXX";
static char path[128];

static void echo_run(struct server_call *call)
{
	call->result = json_pack("{s:O, s:s, s:b}", "args", call->request->args, "reason",
		call->request->reason, "dry_run", call->request->dry_run);
}

static void fail_run(struct server_call *call)
{
	server_detail(call, "%s", "web-1 is busy");
	server_detail(call, "%s", "web-2 is busy");
	server_fail(call, ANSWER_CONFLICT, "two of %d are busy", 4);
}

static void count_run(struct server_call *call)
{
	static int count;

	if (++count == 3)
		server_fail(call, ANSWER_NOT_FOUND, "no more");
	else
		call->result = json_pack("{s:i}", "count", count);
}

static void typed_run(struct server_call *call)
{
	const char *name = NULL;
	uint64_t number = 5;

	if (server_text(call, "name", &name) == ANSWER_DONE &&
		server_number_optional(call, "number", 1, 10, &number) == ANSWER_DONE)
		call->result = json_pack("{s:s, s:I, s:b}", "name", name, "number",
			(json_int_t)number, "flag", server_flag(call, "flag"));
}

static void bytes_run(struct server_call *call)
{
	// Bytes that are no UTF-8 must not end the daemon or the connection.
	server_fail(call, ANSWER_FAILED, "\xff\xfe");
}

static void big_run(struct server_call *call)
{
	char *text = malloc(4 << 20);

	memset(text, 'x', 4 << 20);
	call->result = json_pack("{s:s%}", "text", text, (size_t)(4 << 20));
	free(text);
}

static const struct server_verb verbs[] = {
	{"echo", SERVER_VIEWER, true, false, echo_run},
	{"fail", SERVER_VIEWER, false, false, fail_run},
	{"count", SERVER_VIEWER, false, true, count_run},
	{"typed", SERVER_ADMIN, false, false, typed_run},
	{"bytes", SERVER_VIEWER, false, false, bytes_run},
	{"big", SERVER_VIEWER, false, false, big_run},
};

static const struct server_options options = {
	.path = path,
	.mode = 0660,
	.group = SERVER_NO_GROUP,
	.viewer = SERVER_NO_GROUP,
	.operators = SERVER_NO_GROUP,
	.admins = SERVER_NO_GROUP,
	.others = SERVER_NOBODY,
	.verbs = verbs,
	.verb_count = sizeof(verbs) / sizeof(verbs[0]),
	.connections_max = 3,
	.request_bytes_max = LINE_MAX_,
};

static pid_t start_server(void)
{
	int ready[2];
	char byte;
	pid_t pid;

	if (pipe(ready) != 0)
		abort();
	pid = fork();
	if (pid == 0) {
		struct server *server;
		sd_event *event;

		alarm(60);
		if (sd_event_new(&event) < 0 || server_create(event, &options, &server) != 0 ||
			write(ready[1], "x", 1) != 1)
			_exit(1);
		_exit(sd_event_loop(event) < 0);
	}
	close(ready[1]);
	CU_ASSERT_EQUAL(read(ready[0], &byte, 1), 1);
	close(ready[0]);
	return pid;
}

static void stop_server(pid_t pid)
{
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

static void send_text(struct client *client, const char *text)
{
	CU_ASSERT_EQUAL(write(client->socket, text, strlen(text)), (ssize_t)strlen(text));
}

// Sends a line and gives the reply, which the caller frees.
static json_t *ask(struct client *client, const char *line)
{
	json_t *reply = NULL;

	send_text(client, line);
	CU_ASSERT_EQUAL_FATAL(client_receive(client, WAIT_MS, &reply), 0);
	return reply;
}

static int code_of(json_t *reply)
{
	int code =
		(int)json_integer_value(json_object_get(json_object_get(reply, "error"), "code"));

	CU_ASSERT_EQUAL(json_is_true(json_object_get(reply, "ok")), code == 0);
	json_decref(reply);
	return code;
}

static void requests_are_answered_in_order_on_one_connection(void)
{
	pid_t pid = start_server();
	struct client client;
	json_t *reply;

	CU_ASSERT_EQUAL_FATAL(client_open(path, &client), 0);
	send_text(&client,
		"{\"id\":1,\"verb\":\"echo\",\"args\":{\"a\":1},\"reason\":\"r\"}\n"
		"{\"id\":2,\"verb\":\"fail\"}\n{\"id\":3,\"ver");
	for (int i = 1; i <= 2; i++) {
		CU_ASSERT_EQUAL_FATAL(client_receive(&client, WAIT_MS, &reply), 0);
		CU_ASSERT_EQUAL(json_integer_value(json_object_get(reply, "id")), i);
		json_decref(reply);
	}
	CU_ASSERT_EQUAL(client_receive(&client, 50, &reply), -ETIMEDOUT);
	CU_ASSERT_EQUAL(code_of(ask(&client, "b\":\"echo\"}\n")), 0);
	client_close(&client);
	stop_server(pid);
}

static void a_failure_carries_code_name_and_details(void)
{
	pid_t pid = start_server();
	struct client client;
	json_t *reply, *error;

	CU_ASSERT_EQUAL_FATAL(client_open(path, &client), 0);
	reply = ask(&client, "{\"id\":5,\"verb\":\"fail\"}\n");
	error = json_object_get(reply, "error");
	CU_ASSERT_STRING_EQUAL(json_string_value(json_object_get(error, "name")), "conflict");
	CU_ASSERT_STRING_EQUAL(
		json_string_value(json_object_get(error, "message")), "two of 4 are busy");
	CU_ASSERT_EQUAL(json_array_size(json_object_get(error, "details")), 2);
	CU_ASSERT_EQUAL(code_of(reply), ANSWER_CONFLICT);
	client_close(&client);
	stop_server(pid);
}

static void malformed_lines_are_answered_and_the_connection_stays(void)
{
	static const char *const lines[] = {"\n", "x\n", "{}\n", "[1,2]\n", "{\"verb\":\"none\"}\n",
		"{\"verb\":\"echo\",\"args\":7}\n", "\xff\xff\n"};
	pid_t pid = start_server();
	struct client client;

	CU_ASSERT_EQUAL_FATAL(client_open(path, &client), 0);
	for (unsigned i = 0; i < sizeof(lines) / sizeof(lines[0]); i++)
		CU_ASSERT_EQUAL(code_of(ask(&client, lines[i])), ANSWER_USAGE);
	CU_ASSERT_EQUAL(code_of(ask(&client, "{\"verb\":\"bytes\"}\n")), ANSWER_FAILED);
	CU_ASSERT_EQUAL(
		code_of(ask(&client, "{\"verb\":\"fail\",\"dry_run\":true}\n")), ANSWER_USAGE);
	CU_ASSERT_EQUAL(code_of(ask(&client, "{\"verb\":\"echo\"}\n")), ANSWER_DONE);
	client_close(&client);
	stop_server(pid);
}

static void arguments_are_typed_and_bounded(void)
{
	static const struct {
		const char *line;
		int code;
	} cases[] = {
		{"{\"verb\":\"typed\",\"args\":{\"name\":\"a\",\"number\":10,\"flag\":true}}\n", 0},
		{"{\"verb\":\"typed\",\"args\":{\"name\":\"a\"}}\n", 0},
		{"{\"verb\":\"typed\"}\n", 2},
		{"{\"verb\":\"typed\",\"args\":{\"name\":\"\"}}\n", 2},
		{"{\"verb\":\"typed\",\"args\":{\"name\":7}}\n", 2},
		{"{\"verb\":\"typed\",\"args\":{\"name\":\"a\\u0000b\"}}\n", 2},
		{"{\"verb\":\"typed\",\"args\":{\"name\":\"a\",\"number\":11}}\n", 2},
		{"{\"verb\":\"typed\",\"args\":{\"name\":\"a\",\"number\":-1}}\n", 2},
		{"{\"verb\":\"typed\",\"args\":{\"name\":\"a\",\"number\":\"3\"}}\n", 2},
	};
	pid_t pid = start_server();
	struct client client;

	CU_ASSERT_EQUAL_FATAL(client_open(path, &client), 0);
	for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		CU_ASSERT_EQUAL(code_of(ask(&client, cases[i].line)), cases[i].code);
	client_close(&client);
	stop_server(pid);
}

static void too_long_a_line_is_answered_and_closed(void)
{
	pid_t pid = start_server();
	struct client client;
	char line[LINE_MAX_ + 2];
	json_t *reply;

	memset(line, 'a', sizeof(line));
	line[sizeof(line) - 1] = '\0';
	CU_ASSERT_EQUAL_FATAL(client_open(path, &client), 0);
	CU_ASSERT_EQUAL(code_of(ask(&client, line)), ANSWER_USAGE);
	CU_ASSERT_EQUAL(client_receive(&client, WAIT_MS, &reply), -ECONNRESET);
	client_close(&client);
	stop_server(pid);
}

static void connections_beyond_the_limit_are_told_so(void)
{
	pid_t pid = start_server();
	struct client clients[4];
	json_t *reply;

	for (int i = 0; i < 4; i++)
		CU_ASSERT_EQUAL_FATAL(client_open(path, &clients[i]), 0);
	// The first answer shows that the server has taken the earlier ones.
	CU_ASSERT_EQUAL(code_of(ask(&clients[2], "{\"verb\":\"echo\"}\n")), 0);
	CU_ASSERT_EQUAL_FATAL(client_receive(&clients[3], WAIT_MS, &reply), 0);
	CU_ASSERT_EQUAL(code_of(reply), ANSWER_FAILED);
	CU_ASSERT_EQUAL(client_receive(&clients[3], WAIT_MS, &reply), -ECONNRESET);
	client_close(&clients[0]);
	client_close(&clients[3]);
	// A place is free again.
	CU_ASSERT_EQUAL(code_of(ask(&clients[1], "{\"verb\":\"echo\"}\n")), 0);
	CU_ASSERT_EQUAL_FATAL(client_open(path, &clients[3]), 0);
	CU_ASSERT_EQUAL(code_of(ask(&clients[3], "{\"verb\":\"echo\"}\n")), 0);
	for (int i = 1; i < 4; i++)
		client_close(&clients[i]);
	stop_server(pid);
}

static void a_watched_verb_repeats_until_it_fails(void)
{
	pid_t pid = start_server();
	struct client client;
	json_t *reply;

	CU_ASSERT_EQUAL_FATAL(client_open(path, &client), 0);
	send_text(&client, "{\"id\":4,\"verb\":\"count\",\"args\":{\"watch\":true}}\n");
	for (int i = 1; i <= 2; i++) {
		CU_ASSERT_EQUAL_FATAL(client_receive(&client, WAIT_MS, &reply), 0);
		CU_ASSERT_TRUE(json_is_true(json_object_get(reply, "more")));
		CU_ASSERT_EQUAL(json_integer_value(
					json_object_get(json_object_get(reply, "result"), "count")),
			i);
		json_decref(reply);
	}
	CU_ASSERT_EQUAL_FATAL(client_receive(&client, WAIT_MS, &reply), 0);
	CU_ASSERT_PTR_NULL(json_object_get(reply, "more"));
	CU_ASSERT_EQUAL(code_of(reply), ANSWER_NOT_FOUND);
	CU_ASSERT_EQUAL(code_of(ask(&client, "{\"verb\":\"echo\"}\n")), 0);
	client_close(&client);
	stop_server(pid);
}

static void large_answers_arrive_whole_and_a_peer_that_leaves_hurts_nobody(void)
{
	pid_t pid = start_server();
	struct client client, leaver;
	json_t *reply;

	CU_ASSERT_EQUAL_FATAL(client_open(path, &leaver), 0);
	send_text(&leaver, "{\"verb\":\"big\"}\n{\"verb\":\"big\"}\n");
	client_close(&leaver);
	CU_ASSERT_EQUAL_FATAL(client_open(path, &client), 0);
	reply = ask(&client, "{\"verb\":\"big\"}\n");
	CU_ASSERT_EQUAL(
		json_string_length(json_object_get(json_object_get(reply, "result"), "text")),
		4 << 20);
	CU_ASSERT_EQUAL(code_of(reply), 0);
	client_close(&client);
	stop_server(pid);
}

static void the_socket_has_its_mode_and_a_dead_one_is_replaced(void)
{
	pid_t pid = start_server();
	struct server *server = NULL;
	struct stat info;
	sd_event *event;

	CU_ASSERT_EQUAL(stat(path, &info), 0);
	CU_ASSERT_EQUAL(info.st_mode & 07777, 0660);
	CU_ASSERT(sd_event_new(&event) >= 0);
	CU_ASSERT_EQUAL(server_create(event, &options, &server), -EADDRINUSE);
	stop_server(pid);
	CU_ASSERT_EQUAL(stat(path, &info), 0);
	CU_ASSERT_EQUAL(server_create(event, &options, &server), 0);
	server_destroy(server);
	CU_ASSERT_NOT_EQUAL(stat(path, &info), 0);
	// A file that is no socket is somebody's: it stays.
	fclose(fopen(path, "w"));
	CU_ASSERT_EQUAL(server_create(event, &options, &server), -EEXIST);
	CU_ASSERT_EQUAL(unlink(path), 0);
	sd_event_unref(event);
}

static void roles_follow_from_the_peer_alone(void)
{
	struct server_options roles = options;
	gid_t groups[] = {100, 7, 8, 9};
	uid_t stranger = geteuid() + 12345;

	CU_ASSERT_EQUAL(connection_role(&roles, 0, groups, 4), SERVER_ADMIN);
	CU_ASSERT_EQUAL(connection_role(&roles, geteuid(), groups, 4), SERVER_ADMIN);
	CU_ASSERT_EQUAL(connection_role(&roles, stranger, groups, 4), SERVER_NOBODY);
	roles.viewer = 7;
	CU_ASSERT_EQUAL(connection_role(&roles, stranger, groups, 4), SERVER_VIEWER);
	roles.operators = 9;
	CU_ASSERT_EQUAL(connection_role(&roles, stranger, groups, 4), SERVER_OPERATOR);
	roles.admins = 8;
	CU_ASSERT_EQUAL(connection_role(&roles, stranger, groups, 4), SERVER_ADMIN);
	CU_ASSERT_EQUAL(connection_role(&roles, stranger, groups, 1), SERVER_NOBODY);
	// A peer in the group -1 cannot exist, but must not match "no group" either.
	gid_t none[] = {SERVER_NO_GROUP};

	roles = options;
	CU_ASSERT_EQUAL(connection_role(&roles, stranger, none, 1), SERVER_NOBODY);
}

int main(void)
{
	static const struct test_case cases[] = {
		{"requests_are_answered_in_order_on_one_connection",
			requests_are_answered_in_order_on_one_connection},
		{"a_failure_carries_code_name_and_details",
			a_failure_carries_code_name_and_details},
		{"malformed_lines_are_answered_and_the_connection_stays",
			malformed_lines_are_answered_and_the_connection_stays},
		{"arguments_are_typed_and_bounded", arguments_are_typed_and_bounded},
		{"too_long_a_line_is_answered_and_closed", too_long_a_line_is_answered_and_closed},
		{"connections_beyond_the_limit_are_told_so",
			connections_beyond_the_limit_are_told_so},
		{"a_watched_verb_repeats_until_it_fails", a_watched_verb_repeats_until_it_fails},
		{"large_answers_arrive_whole_and_a_peer_that_leaves_hurts_nobody",
			large_answers_arrive_whole_and_a_peer_that_leaves_hurts_nobody},
		{"the_socket_has_its_mode_and_a_dead_one_is_replaced",
			the_socket_has_its_mode_and_a_dead_one_is_replaced},
		{"roles_follow_from_the_peer_alone", roles_follow_from_the_peer_alone},
	};
	int failed;

	signal(SIGPIPE, SIG_IGN);
	if (mkdtemp(directory) == NULL)
		return 1;
	snprintf(path, sizeof(path), "%s/socket", directory);
	failed = SUITE_RUN("server", cases);
	unlink(path);
	rmdir(directory);
	return failed;
}
