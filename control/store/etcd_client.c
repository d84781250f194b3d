// SPDX-License-Identifier: Apache-2.0
#include "control/store/etcd_client.h"

#include "control/store/etcd_credentials.h"

#include <errno.h>
#include <openssl/evp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>

#define REPLY_BYTES_MAX (64u << 20)
#define BACKOFF_MS_MIN  250u
#define BACKOFF_MS_MAX  4000u
#define URL_BYTES       512u
#define EXCERPT_BYTES   120

// What came back is judged as one of: 0; an error of etcd_call(); or
#define ANOTHER_ENDPOINT (-EAGAIN) // it may have more luck, and so may this one later
#define NO_USE_WAITING \
	(-ENOTCONN) // another may have more luck; this one wants a change of files first
#define LOGIN_AGAIN   (-EKEYEXPIRED)  // the token is none any more
#define LOGIN_REFUSED (-EKEYREJECTED) // user and password are not taken

// gRPC codes as the gateway hands them on.
#define GRPC_PERMISSION_DENIED 7
#define GRPC_UNAVAILABLE       14
#define GRPC_UNAUTHENTICATED   16

__attribute__((format(printf, 3, 4))) static int fail(
	struct etcd_client *client, int code, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(client->error, sizeof(client->error), format, args);
	va_end(args);
	return code;
}

uint64_t etcd_now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

uint32_t etcd_jitter_ms(uint32_t most)
{
	uint32_t random = 0;

	if (getrandom(&random, sizeof(random), 0) != sizeof(random))
		random = (uint32_t)etcd_now_ms();
	return most == 0 ? 0 : random % most;
}

json_t *etcd_encode(const void *bytes, size_t length)
{
	char *text = malloc(4 * ((length + 2) / 3) + 1);
	json_t *ret = NULL;

	if (text == NULL)
		return NULL;
	int written = EVP_EncodeBlock((unsigned char *)text, bytes, (int)length);

	ret = json_stringn(text, (size_t)written);
	free(text);
	return ret;
}

char *etcd_decode(const json_t *value, size_t *ret_length)
{
	size_t length = json_is_string(value) ? json_string_length(value) : 0;
	const char *text = json_is_string(value) ? json_string_value(value) : "";
	char *bytes = malloc(length / 4 * 3 + 4);

	if (bytes == NULL)
		return NULL;
	int written = length == 0
		? 0
		: EVP_DecodeBlock((unsigned char *)bytes, (const unsigned char *)text, (int)length);

	if (written < 0) {
		free(bytes);
		return NULL;
	}
	// The decoder counts the padding as bytes.
	for (size_t i = length; i > 0 && i > length - 2 && text[i - 1] == '='; i--)
		written--;
	bytes[written] = '\0';
	*ret_length = (size_t)written;
	return bytes;
}

uint64_t etcd_number(const json_t *object, const char *key)
{
	const json_t *value = json_object_get(object, key);

	if (json_is_integer(value))
		return (uint64_t)json_integer_value(value);
	return json_is_string(value) ? strtoull(json_string_value(value), NULL, 10) : 0;
}

// --- one attempt -----------------------------------------------------------------------------------

struct buffer {
	char *bytes;
	size_t length;
};

static size_t take(char *bytes, size_t size, size_t count, void *context)
{
	struct buffer *buffer = context;
	size_t length = size * count;

	if (buffer->length + length > REPLY_BYTES_MAX)
		return 0;
	char *larger = realloc(buffer->bytes, buffer->length + length);

	if (larger == NULL)
		return 0;
	memcpy(larger + buffer->length, bytes, length);
	buffer->bytes = larger;
	buffer->length += length;
	return length;
}

// Adds a line and frees the list when there is no room for it, so that calls nest.
static struct curl_slist *header_add(struct curl_slist *headers, const char *line)
{
	struct curl_slist *longer = line ? curl_slist_append(headers, line) : NULL;

	if (longer == NULL)
		curl_slist_free_all(headers);
	return longer;
}

// A token is as long as etcd likes: a signed one (JWT) has a kilobyte.
static struct curl_slist *header_add_token(struct curl_slist *headers, const char *token)
{
	char *line = NULL;

	if (headers == NULL || asprintf(&line, "Authorization: %s", token) < 0)
		line = NULL;
	headers = header_add(headers, line);
	free(line);
	return headers;
}

int etcd_client_prepare(struct etcd_client *client, CURL *curl, const char *path, uint32_t endpoint,
	struct curl_slist **ret_headers)
{
	char url[URL_BYTES];
	struct curl_slist *headers = header_add(NULL, "Content-Type: application/json");

	snprintf(url, sizeof(url), "%s/v3/%s", client->config->endpoints[endpoint], path);
	if (client->token != NULL && client->token[0] != '\0')
		headers = header_add_token(headers, client->token);
	if (headers == NULL)
		return fail(client, -ENOMEM, "out of memory");
	client->detail[0] = '\0';
	curl_easy_setopt(curl, CURLOPT_ERRORBUFFER, client->detail);
	curl_easy_setopt(curl, CURLOPT_URL, url);
	curl_easy_setopt(curl, CURLOPT_HTTPHEADER, headers);
	curl_easy_setopt(curl, CURLOPT_POST, 1L);
	curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
	curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR, "http,https");
	curl_easy_setopt(curl, CURLOPT_CONNECTTIMEOUT_MS, (long)ETCD_CONNECT_MS);
	etcd_credentials_use(&client->config->tls, curl);
	*ret_headers = headers;
	return 0;
}

// An answer of etcd that says no.
struct refusal {
	const char *endpoint;
	const char *message;
	json_int_t code; // of gRPC
	long status;     // of HTTP
};

static bool says(const struct refusal *refusal, const char *words)
{
	return strstr(refusal->message, words) != NULL;
}

// Refusals that have to do with who we are. Returns 0 when it is none of them.
static int judge_user(struct etcd_client *client, const struct refusal *refusal)
{
	const struct config_store *config = client->config;
	// A request without a token where users are on comes as an invalid argument.
	bool anonymous = says(refusal, "user name is empty");

	if (anonymous && config->user[0] == '\0')
		return fail(client, -EACCES,
			"%s has users on, and none is configured: set store.user and store.password_file",
			refusal->endpoint);
	// The last: a signed token from before the users were changed.
	if (anonymous || refusal->code == GRPC_UNAUTHENTICATED || refusal->status == 401 ||
		says(refusal, "revision of auth store is old"))
		return fail(client, LOGIN_AGAIN,
			"%s does not take the token that it gave to %s: %s", refusal->endpoint,
			config->user, refusal->message);
	if (refusal->code == GRPC_PERMISSION_DENIED || refusal->status == 403)
		return fail(client, -EACCES,
			"%s: user %s may not do this (%s): its role needs readwrite on the prefix %s/",
			refusal->endpoint, config->user, refusal->message, config->prefix);
	// The gateway answers so, in plain text, when certificates name users; it cannot pass a name on.
	if (says(refusal, "CommonName"))
		return fail(client, -EACCES,
			"%s refuses store.tls.certificate %s, which has a common name: etcd's gateway "
			"wants one without (%.60s)",
			refusal->endpoint, config->tls.certificate, refusal->message);
	return 0;
}

static int judge_refusal(struct etcd_client *client, const struct refusal *refusal)
{
	int rc = judge_user(client, refusal);

	if (rc < 0)
		return rc;
	if (refusal->code == GRPC_UNAVAILABLE || refusal->status >= 500 ||
		says(refusal, "leader") || says(refusal, "timed out"))
		rc = ANOTHER_ENDPOINT;
	else
		rc = -EREMOTEIO;
	return fail(client, rc, "%s: %s", refusal->endpoint, refusal->message);
}

// What an answer says instead of a result. Not all that etcd's port answers is JSON.
static const char *message_of(const json_t *reply, const struct buffer *buffer, char *room)
{
	const char *message = json_string_value(json_object_get(reply, "message"));

	if (message == NULL)
		message = json_string_value(json_object_get(reply, "error"));
	if (message != NULL)
		return message;
	snprintf(room, EXCERPT_BYTES, "%.*s",
		(int)(buffer->length < EXCERPT_BYTES ? buffer->length : EXCERPT_BYTES - 1),
		buffer->bytes ? buffer->bytes : "");
	room[strcspn(room, "\r\n")] = '\0';
	return room[0] != '\0' ? room : "no reason given";
}

// Judges an answer; takes its bytes.
static int judge(
	struct etcd_client *client, const char *endpoint, struct buffer *buffer, json_t **ret_reply)
{
	json_t *reply = json_loadb(
		buffer->bytes ? buffer->bytes : "", buffer->length, JSON_REJECT_DUPLICATES, NULL);
	struct refusal refusal = {
		.endpoint = endpoint, .code = json_integer_value(json_object_get(reply, "code"))};
	char room[EXCERPT_BYTES];
	int rc = 0;

	curl_easy_getinfo(client->curl, CURLINFO_RESPONSE_CODE, &refusal.status);
	if (refusal.status != 200) {
		refusal.message = message_of(reply, buffer, room);
		rc = judge_refusal(client, &refusal);
	} else if (!json_is_object(reply)) {
		rc = fail(client, -EPROTO, "%s: what answers there is not etcd", endpoint);
	}
	free(buffer->bytes);
	if (rc == 0)
		*ret_reply = reply;
	else
		json_decref(reply);
	return rc;
}

// Once for each time that the request is put on a connection: libcurl itself sends again what a kept connection broke on.
static int count_send(void *context, char *to, char *from, int to_port, int from_port)
{
	struct etcd_client *client = context;

	(void)to, (void)from, (void)to_port, (void)from_port;
	client->sends++;
	return CURL_PREREQFUNC_OK;
}

static int tell_failure(struct etcd_client *client, const char *endpoint, CURLcode code)
{
	long connects = 0, received = 0;

	curl_easy_getinfo(client->curl, CURLINFO_NUM_CONNECTS, &connects);
	curl_easy_getinfo(client->curl, CURLINFO_HEADER_SIZE, &received);
	struct etcd_failure failure = {
		.endpoint = endpoint,
		.code = code,
		.detail = client->detail,
		.silent = connects > 0 && received == 0 &&
			(code == CURLE_GOT_NOTHING || code == CURLE_SEND_ERROR ||
				code == CURLE_RECV_ERROR),
	};

	return etcd_failure_tell(client->config, &failure, client->error, sizeof(client->error))
		? NO_USE_WAITING
		: ANOTHER_ENDPOINT;
}

static int attempt(struct etcd_client *client, uint32_t endpoint, const char *path,
	const char *body, json_t **ret_reply)
{
	const char *url = client->config->endpoints[endpoint];
	struct buffer buffer = {0};
	struct curl_slist *headers;

	curl_easy_reset(client->curl);
	int rc = etcd_client_prepare(client, client->curl, path, endpoint, &headers);

	if (rc < 0)
		return rc;
	curl_easy_setopt(client->curl, CURLOPT_POSTFIELDS, body);
	curl_easy_setopt(client->curl, CURLOPT_TIMEOUT_MS, (long)ETCD_TRY_MS);
	curl_easy_setopt(client->curl, CURLOPT_WRITEFUNCTION, take);
	curl_easy_setopt(client->curl, CURLOPT_WRITEDATA, &buffer);
	curl_easy_setopt(client->curl, CURLOPT_PREREQFUNCTION, count_send);
	curl_easy_setopt(client->curl, CURLOPT_PREREQDATA, client);
	CURLcode code = curl_easy_perform(client->curl);

	curl_slist_free_all(headers);
	if (code == CURLE_OK)
		return judge(client, url, &buffer, ret_reply);
	free(buffer.bytes);
	return tell_failure(client, url, code);
}

// --- a call ----------------------------------------------------------------------------------------

int etcd_client_open(struct etcd_client *client, const struct config_store *config)
{
	*client = (struct etcd_client){.config = config};
	// Not safe against other threads, hence before there are any; repeated calls only count.
	if (curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK)
		return fail(client, -ENOMEM, "cannot set libcurl up");
	// Any of them: the nodes of a fleet do not all go to the first.
	client->endpoint = etcd_jitter_ms(config->endpoint_count);
	client->curl = curl_easy_init();
	return client->curl ? 0 : fail(client, -ENOMEM, "out of memory");
}

void etcd_client_close(struct etcd_client *client)
{
	curl_easy_cleanup(client->curl);
	etcd_client_logout(client);
	client->curl = NULL;
}

void etcd_client_logout(struct etcd_client *client)
{
	free(client->token);
	client->token = NULL;
}

// The request for a token, with the password in it; the caller clears and frees it. NULL: client->error says why.
static char *login_body(struct etcd_client *client)
{
	char password[ETCD_PASSWORD_BYTES];

	if (etcd_password_read(client->config, password, client->error, sizeof(client->error)) < 0)
		return NULL;
	json_t *request =
		json_pack("{s:s, s:s}", "name", client->config->user, "password", password);
	char *body = request ? json_dumps(request, JSON_COMPACT) : NULL;

	explicit_bzero(password, sizeof(password));
	json_decref(request);
	if (body == NULL)
		fail(client, -ENOMEM, "the password in %s is no UTF-8",
			client->config->password_file);
	return body;
}

static int login(struct etcd_client *client, uint32_t endpoint)
{
	const struct config_store *config = client->config;
	uint32_t sends = client->sends;
	char why[ETCD_ERROR_BYTES];
	json_t *reply = NULL;

	etcd_client_logout(client);
	char *body = login_body(client);

	if (body == NULL)
		return LOGIN_REFUSED;
	int rc = attempt(client, endpoint, "auth/authenticate", body, &reply);

	client->sends = sends;
	explicit_bzero(body, strlen(body));
	free(body);
	// Users may be configured here before they are turned on there.
	if (rc == -EREMOTEIO && strstr(client->error, "authentication is not enabled") != NULL) {
		client->token = strdup("");
		return client->token ? 0 : fail(client, -ENOMEM, "out of memory");
	}
	if (rc == -EREMOTEIO) {
		snprintf(why, sizeof(why), "%s", client->error);
		return fail(client, LOGIN_REFUSED, "%.150s: user %s with the password of %s", why,
			config->user, config->password_file);
	}
	if (rc < 0)
		return rc;
	const char *token = json_string_value(json_object_get(reply, "token"));

	client->token = token ? strdup(token) : NULL;
	json_decref(reply);
	return client->token
		? 0
		: fail(client, -EPROTO, "%s gave no token", config->endpoints[endpoint]);
}

int etcd_client_login(struct etcd_client *client)
{
	if (client->config->user[0] == '\0' || client->token != NULL)
		return 0;
	return login(client, client->endpoint);
}

// One attempt at one endpoint, with a login before it where one is due, and another when the token is none any more:
// it ran out, or the member was started anew.
static int attempt_as_user(struct etcd_client *client, bool *renewed, const char *path,
	const char *body, json_t **ret_reply)
{
	uint32_t endpoint = client->endpoint, sends = client->sends;
	int rc = etcd_client_login(client);

	if (rc == 0)
		rc = attempt(client, endpoint, path, body, ret_reply);
	if (rc != LOGIN_AGAIN || *renewed)
		return rc;
	*renewed = true;
	client->sends = sends; // a request whose token is not taken does nothing
	rc = login(client, endpoint);
	return rc == 0 ? attempt(client, endpoint, path, body, ret_reply) : rc;
}

// An election may be going on; not all nodes ask at once whether it is over.
static void wait_a_little(void)
{
	struct timespec wait = {.tv_nsec = (long)(50 + etcd_jitter_ms(100)) * 1000000};

	nanosleep(&wait, NULL);
}

// Goes through the endpoints until one has done it, none of them will, or the time is over.
static int attempts(
	struct etcd_client *client, const char *path, const char *body, json_t **ret_reply)
{
	uint32_t count = client->config->endpoint_count, hopeless = 0, tries = 0;
	uint64_t end_ms = etcd_now_ms() + (client->down_count == 0 ? ETCD_CALL_MS : ETCD_PROBE_MS);
	bool renewed = false;

	client->sends = 0;
	do {
		int rc = attempt_as_user(client, &renewed, path, body, ret_reply);

		if (rc != ANOTHER_ENDPOINT && rc != NO_USE_WAITING)
			return rc == LOGIN_AGAIN ? -EACCES : rc;
		hopeless = rc == NO_USE_WAITING ? hopeless + 1 : 0;
		client->endpoint = (client->endpoint + 1) % count;
		if (++tries % count == 0)
			wait_a_little();
	} while (hopeless < count && etcd_now_ms() < end_ms);
	return -EIO;
}

static void count_failure(struct etcd_client *client, int rc)
{
	uint32_t wait_ms = BACKOFF_MS_MAX;

	client->down_rc = rc;

	if (client->down_count < 4)
		wait_ms = BACKOFF_MS_MIN << client->down_count;
	client->down_count++;
	client->down_until_ms = etcd_now_ms() + wait_ms / 2 + etcd_jitter_ms(wait_ms / 2);
}

int etcd_call(struct etcd_client *client, const char *path, json_t *request, json_t **ret_reply)
{
	char *body = request ? json_dumps(request, JSON_COMPACT) : NULL;

	json_decref(request);
	if (body == NULL)
		return fail(client, -ENOMEM, "out of memory");
	if (client->down_count > 0 && etcd_now_ms() < client->down_until_ms) {
		free(body);
		client->sends = 0;
		return client->down_rc; // the sentence of the call that failed still stands
	}
	int rc = attempts(client, path, body, ret_reply);
	bool refused = rc == LOGIN_REFUSED; // a login costs etcd more than a call does

	free(body);
	rc = refused ? -EACCES : rc;
	if (rc == -EIO || refused)
		count_failure(client, rc);
	else
		client->down_count = 0;
	return rc;
}
