// SPDX-License-Identifier: Apache-2.0
#include "control/metrics/http.h"

#include "control/cli/flow_text.h"

#include <arpa/inet.h>
#include <errno.h>
#include <microhttpd.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#define CONNECTIONS_MAX 16u
#define TIMEOUT_S       10u
#define BACKLOG         16
#define ACCURACY_US     50000u

struct metrics_http {
	struct MHD_Daemon *daemon;
	sd_event_source *io;
	sd_event_source *timer;
	metrics_render *render;
	void *context;
	char path[sizeof(((struct sockaddr_un *)NULL)->sun_path)]; // of a Unix socket, else empty
	unsigned port;
};

static enum MHD_Result answer(struct MHD_Connection *connection, unsigned status, const char *type,
	char *text, size_t length)
{
	struct MHD_Response *response =
		MHD_create_response_from_buffer(length, text, MHD_RESPMEM_MUST_FREE);
	enum MHD_Result result;

	if (response == NULL) {
		free(text);
		return MHD_NO;
	}
	MHD_add_response_header(response, "Content-Type", type);
	result = MHD_queue_response(connection, status, response);
	MHD_destroy_response(response);
	return result;
}

static enum MHD_Result answer_text(
	struct MHD_Connection *connection, unsigned status, const char *text)
{
	char *copy = strdup(text);

	return copy ? answer(connection, status, "text/plain; charset=utf-8", copy, strlen(copy))
		    : MHD_NO;
}

static enum MHD_Result handle_http(void *context, struct MHD_Connection *connection,
	const char *url, const char *method, const char *version, const char *upload,
	size_t *upload_bytes, void **state)
{
	struct metrics_http *http = context;
	const char *scope;
	size_t length;
	char *text;

	(void)version;
	(void)upload;
	// A body is not wanted: take none of it, answer when it is through.
	if (*upload_bytes > 0) {
		*upload_bytes = 0;
		return MHD_YES;
	}
	// The first call comes with the headers alone.
	if (*state == NULL) {
		*state = http;
		return MHD_YES;
	}
	if (strcmp(method, "GET") != 0 && strcmp(method, "HEAD") != 0)
		return answer_text(connection, MHD_HTTP_METHOD_NOT_ALLOWED, "only GET\n");
	if (strcmp(url, "/") == 0)
		return answer_text(connection, MHD_HTTP_OK,
			"/metrics\n/metrics?scope=pool|ring|service|backend|all\n");
	if (strcmp(url, "/metrics") != 0)
		return answer_text(connection, MHD_HTTP_NOT_FOUND, "see /metrics\n");
	scope = MHD_lookup_connection_value(connection, MHD_GET_ARGUMENT_KIND, "scope");
	text = http->render(http->context, scope, &length);
	if (text == NULL)
		return answer_text(connection, MHD_HTTP_INTERNAL_SERVER_ERROR, "out of memory\n");
	return answer(
		connection, MHD_HTTP_OK, "text/plain; version=0.0.4; charset=utf-8", text, length);
}

// Lets the library work, and sets the timer that it wants.
static void run(struct metrics_http *http)
{
	MHD_UNSIGNED_LONG_LONG timeout_ms;

	MHD_run(http->daemon);
	if (MHD_get_timeout(http->daemon, &timeout_ms) != MHD_YES) {
		sd_event_source_set_enabled(http->timer, SD_EVENT_OFF);
		return;
	}
	sd_event_source_set_time_relative(http->timer, timeout_ms * 1000);
	sd_event_source_set_enabled(http->timer, SD_EVENT_ONESHOT);
}

static int on_io(sd_event_source *source, int descriptor, uint32_t events, void *context)
{
	(void)source;
	(void)descriptor;
	(void)events;
	run(context);
	return 0;
}

static int on_time(sd_event_source *source, uint64_t usec, void *context)
{
	(void)source;
	(void)usec;
	run(context);
	return 0;
}

static int listen_unix(struct metrics_http *http, const char *path)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	struct stat info;
	int listener, error;

	if (path[0] != '/' || strlen(path) >= sizeof(address.sun_path))
		return -EINVAL;
	// A socket in the way is one that a killed process left; any other file is somebody's.
	if (lstat(path, &info) == 0 && !S_ISSOCK(info.st_mode))
		return -EEXIST;
	strcpy(address.sun_path, path);
	listener = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (listener < 0)
		return -errno;
	unlink(path);
	if (bind(listener, (struct sockaddr *)&address, sizeof(address)) == 0 &&
		chmod(path, 0660) == 0 && listen(listener, BACKLOG) == 0) {
		strcpy(http->path, path);
		return listener;
	}
	error = -errno;
	close(listener);
	return error;
}

// Fills a socket address. Returns its length.
static socklen_t fill(
	const struct ip_addr *address, uint16_t port, struct sockaddr_storage *ret_address)
{
	struct sockaddr_in6 *v6 = (struct sockaddr_in6 *)ret_address;
	struct sockaddr_in *v4 = (struct sockaddr_in *)ret_address;

	memset(ret_address, 0, sizeof(*ret_address));
	if (address->family == ADDR_V4) {
		v4->sin_family = AF_INET;
		v4->sin_port = htons(port);
		memcpy(&v4->sin_addr, address->bytes, sizeof(v4->sin_addr));
		return sizeof(*v4);
	}
	v6->sin6_family = AF_INET6;
	v6->sin6_port = htons(port);
	memcpy(&v6->sin6_addr, address->bytes, sizeof(v6->sin6_addr));
	return sizeof(*v6);
}

static int listen_tcp(struct metrics_http *http, const char *text)
{
	struct sockaddr_storage socket_address;
	struct ip_addr address;
	socklen_t length;
	int listener, error, one = 1;
	uint16_t port;

	if (flow_text_endpoint(text, &address, &port) != 0)
		return -EINVAL;
	length = fill(&address, port, &socket_address);
	listener = socket(socket_address.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (listener < 0)
		return -errno;
	setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	if (bind(listener, (struct sockaddr *)&socket_address, length) == 0 &&
		listen(listener, BACKLOG) == 0 &&
		getsockname(listener, (struct sockaddr *)&socket_address, &length) == 0) {
		// The port lies at the same place in both families.
		http->port = ntohs(((struct sockaddr_in *)&socket_address)->sin_port);
		return listener;
	}
	error = -errno;
	close(listener);
	return error;
}

static int start(struct metrics_http *http, sd_event *event, int listener)
{
	const union MHD_DaemonInfo *info;
	int error;

	http->daemon = MHD_start_daemon(MHD_USE_EPOLL, 0, NULL, NULL, handle_http, http,
		MHD_OPTION_LISTEN_SOCKET, listener, MHD_OPTION_CONNECTION_LIMIT, CONNECTIONS_MAX,
		MHD_OPTION_CONNECTION_TIMEOUT, TIMEOUT_S, MHD_OPTION_END);
	if (http->daemon == NULL) {
		close(listener);
		return -EIO;
	}
	info = MHD_get_daemon_info(http->daemon, MHD_DAEMON_INFO_EPOLL_FD);
	if (info == NULL)
		return -EIO;
	error = sd_event_add_io(event, &http->io, info->epoll_fd, EPOLLIN, on_io, http);
	if (error >= 0)
		error = sd_event_add_time_relative(
			event, &http->timer, CLOCK_MONOTONIC, 0, ACCURACY_US, on_time, http);
	return error < 0 ? error : 0;
}

int metrics_http_create(sd_event *event, const char *address, metrics_render *render, void *context,
	struct metrics_http **ret)
{
	struct metrics_http *http = calloc(1, sizeof(*http));
	int listener, error;

	if (http == NULL)
		return -ENOMEM;
	http->render = render;
	http->context = context;
	listener = strncmp(address, "unix:", 5) == 0 ? listen_unix(http, address + 5)
						     : listen_tcp(http, address);
	error = listener < 0 ? listener : start(http, event, listener);
	if (error) {
		metrics_http_destroy(http);
		return error;
	}
	*ret = http;
	return 0;
}

void metrics_http_destroy(struct metrics_http *http)
{
	if (http == NULL)
		return;
	sd_event_source_disable_unref(http->io);
	sd_event_source_disable_unref(http->timer);
	if (http->daemon != NULL)
		MHD_stop_daemon(http->daemon);
	if (http->path[0] != '\0')
		unlink(http->path);
	free(http);
}

unsigned metrics_http_port(const struct metrics_http *http)
{
	return http->port;
}
