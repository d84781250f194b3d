// SPDX-License-Identifier: Apache-2.0
#include "control/fleet/inquiry.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

struct inquiry {
	pthread_t thread;
	bool is_query;
	bool answered; // written last by the thread, with release; pairs with the acquire in inquiry_end()
	char *url;
	char *text; // query or body
	struct inquiry_answer answer;
};

static void *ask(void *context)
{
	struct inquiry *inquiry = context;
	struct inquiry_answer *answer = &inquiry->answer;

	answer->result = inquiry->is_query
		? http_query(inquiry->url, inquiry->text, &answer->value, answer->error)
		: http_post(inquiry->url, inquiry->text, answer->error);
	__atomic_store_n(&inquiry->answered, true, __ATOMIC_RELEASE);
	return NULL;
}

static void destroy(struct inquiry *inquiry)
{
	free(inquiry->url);
	free(inquiry->text);
	free(inquiry);
}

static struct inquiry *begin(const char *url, const char *text, bool is_query)
{
	struct inquiry *inquiry = calloc(1, sizeof(*inquiry));

	if (inquiry == NULL)
		return NULL;
	inquiry->is_query = is_query;
	inquiry->url = strdup(url);
	inquiry->text = strdup(text);
	if (inquiry->url == NULL || inquiry->text == NULL ||
		pthread_create(&inquiry->thread, NULL, ask, inquiry) != 0) {
		destroy(inquiry);
		return NULL;
	}
	return inquiry;
}

struct inquiry *inquiry_query(const char *url, const char *query)
{
	return begin(url, query, true);
}

struct inquiry *inquiry_post(const char *url, const char *body)
{
	return begin(url, body, false);
}

void inquiry_wait(struct inquiry *inquiry, struct inquiry_answer *ret)
{
	pthread_join(inquiry->thread, NULL);
	*ret = inquiry->answer;
	destroy(inquiry);
}

bool inquiry_end(struct inquiry *inquiry, struct inquiry_answer *ret)
{
	if (!__atomic_load_n(&inquiry->answered, __ATOMIC_ACQUIRE))
		return false;
	inquiry_wait(inquiry, ret);
	return true;
}
