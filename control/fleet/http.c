// SPDX-License-Identifier: Apache-2.0
#include "control/fleet/http.h"

#include <curl/curl.h>
#include <errno.h>
#include <jansson.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ANSWER_BYTES_MAX 65536u
#define URL_BYTES        2048u

struct answer_text {
	char bytes[ANSWER_BYTES_MAX];
	size_t length;
};

static size_t take(char *bytes, size_t size, size_t count, void *context)
{
	struct answer_text *answer = context;
	size_t length = size * count;

	if (length > sizeof(answer->bytes) - answer->length)
		return 0;
	memcpy(answer->bytes + answer->length, bytes, length);
	answer->length += length;
	return length;
}

static size_t pass_over(char *bytes, size_t size, size_t count, void *context)
{
	(void)bytes, (void)context;
	return size * count;
}

// body: NULL: a GET. ret: NULL: nobody wants the text. Returns the status, or -EIO.
static long ask(const char *url, const char *body, struct answer_text *ret, char *ret_error)
{
	CURL *curl = curl_easy_init();
	struct curl_slist *headers = NULL;
	long status = -EIO;

	if (curl == NULL) {
		snprintf(ret_error, HTTP_ERROR_BYTES, "out of memory");
		return -EIO;
	}
	curl_easy_setopt(curl, CURLOPT_URL, url);
	curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
	curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR, "http,https");
	curl_easy_setopt(curl, CURLOPT_TIMEOUT_MS, (long)HTTP_TIMEOUT_MS);
	curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, ret != NULL ? take : pass_over);
	curl_easy_setopt(curl, CURLOPT_WRITEDATA, ret);
	if (body != NULL) {
		headers = curl_slist_append(NULL, "Content-Type: application/json");
		curl_easy_setopt(curl, CURLOPT_HTTPHEADER, headers);
		curl_easy_setopt(curl, CURLOPT_POSTFIELDS, body);
	}
	CURLcode code = curl_easy_perform(curl);

	if (code == CURLE_OK)
		curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &status);
	else
		snprintf(ret_error, HTTP_ERROR_BYTES, "%s", curl_easy_strerror(code));
	curl_slist_free_all(headers);
	curl_easy_cleanup(curl);
	return status;
}

// {"status":"success","data":{"resultType":"vector","result":[{"metric":{},"value":[time,"1.5"]}]}}, or a scalar.
static int read_value(const json_t *answer, double *ret, char *ret_error)
{
	const json_t *data = json_object_get(answer, "data");
	const json_t *result = json_object_get(data, "result");
	const char *type = json_string_value(json_object_get(data, "resultType"));
	const char *error = json_string_value(json_object_get(answer, "error"));
	const json_t *value = result;

	if (type == NULL || !json_is_array(result)) {
		snprintf(ret_error, HTTP_ERROR_BYTES, "%.100s",
			error ? error : "the answer is not a Prometheus's");
		return -EPROTO;
	}
	if (strcmp(type, "vector") == 0) {
		if (json_array_size(result) != 1) {
			snprintf(ret_error, HTTP_ERROR_BYTES, "the query has %zu values, not one",
				json_array_size(result));
			return -ENODATA;
		}
		value = json_object_get(json_array_get(result, 0), "value");
	}
	const char *text = json_string_value(json_array_get(value, 1));
	char *end;
	double number = text ? strtod(text, &end) : NAN;

	if (text == NULL || end == text || *end != '\0' || isnan(number)) {
		snprintf(ret_error, HTTP_ERROR_BYTES, "the query's value is no number");
		return -ENODATA;
	}
	*ret = number;
	return 0;
}

int http_query(const char *url, const char *query, double *ret, char *ret_error)
{
	struct answer_text *answer = calloc(1, sizeof(*answer));
	char *escaped = curl_easy_escape(NULL, query, 0);
	char whole[URL_BYTES];
	int rc = -EIO;

	snprintf(ret_error, HTTP_ERROR_BYTES, "out of memory");
	if (answer != NULL && escaped != NULL) {
		snprintf(whole, sizeof(whole), "%s/api/v1/query?query=%s", url, escaped);
		if (ask(whole, NULL, answer, ret_error) >= 0) {
			json_t *object = json_loadb(answer->bytes, answer->length, 0, NULL);

			rc = read_value(object, ret, ret_error);
			json_decref(object);
		}
	}
	curl_free(escaped);
	free(answer);
	return rc;
}

int http_post(const char *url, const char *body, char *ret_error)
{
	return (int)ask(url, body, NULL, ret_error);
}
