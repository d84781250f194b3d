// SPDX-License-Identifier: Apache-2.0
#include "control/store/etcd_client.h"

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
#define PASSWORD_BYTES  512u

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

static void prepare_tls(CURL *curl, const struct config_tls *tls)
{
	if (tls->ca[0] != '\0')
		curl_easy_setopt(curl, CURLOPT_CAINFO, tls->ca);
	if (tls->certificate[0] != '\0')
		curl_easy_setopt(curl, CURLOPT_SSLCERT, tls->certificate);
	if (tls->key[0] != '\0')
		curl_easy_setopt(curl, CURLOPT_SSLKEY, tls->key);
	curl_easy_setopt(curl, CURLOPT_SSLVERSION, (long)CURL_SSLVERSION_TLSv1_2);
}

int etcd_client_prepare(struct etcd_client *client, CURL *curl, const char *path, uint32_t endpoint,
	struct curl_slist **ret_headers)
{
	char url[URL_BYTES], header[URL_BYTES];
	struct curl_slist *headers = curl_slist_append(NULL, "Content-Type: application/json");

	snprintf(url, sizeof(url), "%s/v3/%s", client->config->endpoints[endpoint], path);
	if (client->token != NULL && headers != NULL) {
		snprintf(header, sizeof(header), "Authorization: %s", client->token);
		headers = curl_slist_append(headers, header);
	}
	if (headers == NULL)
		return fail(client, -ENOMEM, "out of memory");
	curl_easy_setopt(curl, CURLOPT_URL, url);
	curl_easy_setopt(curl, CURLOPT_HTTPHEADER, headers);
	curl_easy_setopt(curl, CURLOPT_POST, 1L);
	curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
	curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR, "http,https");
	curl_easy_setopt(curl, CURLOPT_CONNECTTIMEOUT_MS, (long)ETCD_CONNECT_MS);
	prepare_tls(curl, &client->config->tls);
	*ret_headers = headers;
	return 0;
}

// Judges an answer. Returns 0, -EAGAIN (another endpoint may do better), -EKEYEXPIRED (log in again), or the error.
static int judge(struct etcd_client *client, const json_t *reply, long status)
{
	json_int_t code = json_integer_value(json_object_get(reply, "code"));
	const char *message = json_string_value(json_object_get(reply, "message"));

	if (message == NULL)
		message = json_string_value(json_object_get(reply, "error"));
	if (message == NULL)
		message = "no reason given";
	if (status == 200)
		return json_is_object(reply) ? 0 : fail(client, -EPROTO, "etcd: not an answer");
	if (code == GRPC_UNAUTHENTICATED || status == 401)
		return fail(client, -EKEYEXPIRED, "etcd: %s", message);
	// A request without a token where users are on comes as an invalid argument.
	if (code == GRPC_PERMISSION_DENIED || status == 403 ||
		strstr(message, "user name is empty") != NULL)
		return fail(client, -EACCES, "etcd: %s", message);
	if (code == GRPC_UNAVAILABLE || status >= 500 || strstr(message, "leader") != NULL ||
		strstr(message, "timed out") != NULL)
		return fail(client, -EAGAIN, "etcd: %s", message);
	return fail(client, -EINVAL, "etcd: %s", message);
}

static int attempt(struct etcd_client *client, uint32_t endpoint, const char *path,
	const char *body, json_t **ret_reply)
{
	struct buffer buffer = {0};
	struct curl_slist *headers;
	long status = 0;

	curl_easy_reset(client->curl);
	int rc = etcd_client_prepare(client, client->curl, path, endpoint, &headers);

	if (rc < 0)
		return rc;
	curl_easy_setopt(client->curl, CURLOPT_POSTFIELDS, body);
	curl_easy_setopt(client->curl, CURLOPT_TIMEOUT_MS, (long)ETCD_TRY_MS);
	curl_easy_setopt(client->curl, CURLOPT_WRITEFUNCTION, take);
	curl_easy_setopt(client->curl, CURLOPT_WRITEDATA, &buffer);
	CURLcode code = curl_easy_perform(client->curl);

	curl_slist_free_all(headers);
	if (code != CURLE_OK) {
		free(buffer.bytes);
		return fail(client, -EAGAIN, "%s: %s", client->config->endpoints[endpoint],
			curl_easy_strerror(code));
	}
	curl_easy_getinfo(client->curl, CURLINFO_RESPONSE_CODE, &status);
	json_t *reply = json_loadb(
		buffer.bytes ? buffer.bytes : "", buffer.length, JSON_REJECT_DUPLICATES, NULL);

	free(buffer.bytes);
	rc = judge(client, reply, status);
	if (rc == 0)
		*ret_reply = reply;
	else
		json_decref(reply);
	return rc;
}

// --- a call ----------------------------------------------------------------------------------------

int etcd_client_open(struct etcd_client *client, const struct config_store *config)
{
	*client = (struct etcd_client){.config = config};
	// Not safe against other threads, hence before there are any; repeated calls only count.
	if (curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK)
		return fail(client, -ENOMEM, "cannot set libcurl up");
	client->curl = curl_easy_init();
	return client->curl ? 0 : fail(client, -ENOMEM, "out of memory");
}

void etcd_client_close(struct etcd_client *client)
{
	curl_easy_cleanup(client->curl);
	free(client->token);
	client->curl = NULL;
	client->token = NULL;
}

static int read_password(struct etcd_client *client, char *ret, size_t bytes)
{
	FILE *file = fopen(client->config->password_file, "re");
	size_t length;

	if (file == NULL)
		return fail(client, -EACCES, "cannot read %s: %s", client->config->password_file,
			strerror(errno));
	length = fread(ret, 1, bytes - 1, file);
	fclose(file);
	ret[length] = '\0';
	ret[strcspn(ret, "\r\n")] = '\0';
	return 0;
}

static int login(struct etcd_client *client, uint32_t endpoint)
{
	char password[PASSWORD_BYTES];
	json_t *reply = NULL;
	int rc = read_password(client, password, sizeof(password));

	if (rc < 0)
		return rc;
	json_t *request =
		json_pack("{s:s, s:s}", "name", client->config->user, "password", password);
	char *body = json_dumps(request, JSON_COMPACT);

	explicit_bzero(password, sizeof(password));
	free(client->token);
	client->token = NULL;
	rc = body ? attempt(client, endpoint, "auth/authenticate", body, &reply) : -ENOMEM;
	if (body != NULL)
		explicit_bzero(body, strlen(body));
	free(body);
	json_decref(request);
	if (rc < 0)
		return rc == -EKEYEXPIRED || rc == -EINVAL ? -EACCES : rc;
	const char *token = json_string_value(json_object_get(reply, "token"));

	client->token = token ? strdup(token) : NULL;
	json_decref(reply);
	return client->token ? 0 : fail(client, -EPROTO, "etcd gave no token");
}

int etcd_client_login(struct etcd_client *client)
{
	if (client->config->user[0] == '\0' || client->token != NULL)
		return 0;
	return login(client, client->endpoint);
}

// Goes through the endpoints until one has done it or the time is over.
static int attempts(
	struct etcd_client *client, const char *path, const char *body, json_t **ret_reply)
{
	uint64_t end_ms = etcd_now_ms() + ETCD_CALL_MS;
	bool renewed = false;
	int rc = -EIO;

	for (uint32_t i = 0; etcd_now_ms() < end_ms; i++) {
		uint32_t endpoint = client->endpoint;

		client->retried = i > 0;
		rc = 0;
		if (client->config->user[0] != '\0' && client->token == NULL)
			rc = login(client, endpoint);
		if (rc == 0)
			rc = attempt(client, endpoint, path, body, ret_reply);
		if (rc == -EKEYEXPIRED && !renewed) {
			renewed = true;
			free(client->token);
			client->token = NULL;
			continue;
		}
		if (rc != -EAGAIN)
			return rc == -EKEYEXPIRED ? -EACCES : rc;
		client->endpoint = (endpoint + 1) % client->config->endpoint_count;
		// A whole round in vain: an election may be going on.
		if ((i + 1) % client->config->endpoint_count == 0) {
			uint32_t wait_ms = 50 + etcd_jitter_ms(100);
			struct timespec wait = {.tv_nsec = (long)wait_ms * 1000000};

			nanosleep(&wait, NULL);
		}
	}
	return -EIO;
}

static void count_failure(struct etcd_client *client)
{
	uint32_t wait_ms = BACKOFF_MS_MAX;

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
		return -EIO; // the sentence of the call that failed still stands
	}
	int rc = attempts(client, path, body, ret_reply);

	free(body);
	if (rc == -EIO)
		count_failure(client);
	else
		client->down_count = 0;
	return rc;
}
