// SPDX-License-Identifier: Apache-2.0
#include "control/daemon/document.h"

#include "control/config/reader.h"
#include "control/daemon/ids.h"
#include "tests/lib/suite.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define DAY_S 86400u

static void config_set(struct document *document, const char *text)
{
	struct config_pools *pools = NULL;
	struct config_report report;

	config_report_init(&report, "text", text, strlen(text));
	CU_ASSERT_EQUAL_FATAL(config_pools_read(&report, &pools), 0);
	CU_ASSERT_EQUAL(document_config_set(document, pools), 0);
	config_report_free(&report);
	config_pools_free(pools);
}

// One pool "web" with the backends whose names are the letters of a word.
static void backends_set(struct document *document, const char *letters)
{
	char text[4096];
	size_t used = (size_t)snprintf(text, sizeof(text),
		"services: [{name: s, address: 203.0.113.1, protocol: tcp, pool: web}]\n"
		"pools:\n- name: web\n  ring: {version: v1}\n  backends:\n");

	for (const char *p = letters; *p != '\0'; p++)
		used += (size_t)snprintf(text + used, sizeof(text) - used,
			"  - {name: %c, address: 10.0.0.%d}\n", *p, *p);
	config_set(document, text);
}

static struct document *fresh(const char *letters)
{
	struct document *document = NULL;

	CU_ASSERT_EQUAL_FATAL(document_create(&document), 0);
	backends_set(document, letters);
	CU_ASSERT_EQUAL(document_ids_assign(document, DAY_S), 0);
	return document;
}

static int id_of(const struct document *document, const char *name)
{
	const struct document_id *id = document_id_find(document, DOCUMENT_BACKEND, "web", name);

	return id == NULL ? -1 : (int)id->id;
}

static void ids_are_dense_and_stay(void)
{
	struct document *document = fresh("abc");

	CU_ASSERT_EQUAL(id_of(document, "a"), 0);
	CU_ASSERT_EQUAL(id_of(document, "c"), 2);
	CU_ASSERT_EQUAL(document_id_find(document, DOCUMENT_POOL, "", "web")->id, 0);
	CU_ASSERT_EQUAL(document_id_find(document, DOCUMENT_SERVICE, "", "s")->id, 0);
	// Order in the file and new neighbours change nothing.
	backends_set(document, "ZcbaA");
	CU_ASSERT_EQUAL(document_ids_assign(document, DAY_S + 1), 0);
	CU_ASSERT_EQUAL(id_of(document, "a"), 0);
	CU_ASSERT_EQUAL(id_of(document, "c"), 2);
	CU_ASSERT_EQUAL(id_of(document, "A"), 3);
	CU_ASSERT_EQUAL(id_of(document, "Z"), 4);
	CU_ASSERT_STRING_EQUAL(document_id_name(document, DOCUMENT_BACKEND, 4)->name, "Z");
	document_free(document);
}

static void freed_id_rests_before_it_names_something_else(void)
{
	struct document *document = fresh("abc");
	uint64_t freed_s = DAY_S + 100;

	backends_set(document, "ac");
	CU_ASSERT_EQUAL(document_ids_assign(document, freed_s), 0);
	CU_ASSERT_EQUAL(id_of(document, "b"), -1);
	backends_set(document, "acd");
	CU_ASSERT_EQUAL(document_ids_assign(document, freed_s + IDS_QUARANTINE_S - 1), 0);
	CU_ASSERT_EQUAL(id_of(document, "d"), 3);
	backends_set(document, "acde");
	CU_ASSERT_EQUAL(document_ids_assign(document, freed_s + IDS_QUARANTINE_S), 0);
	CU_ASSERT_EQUAL(id_of(document, "e"), 1);
	document_free(document);
}

static void what_comes_back_in_time_gets_its_own_id_again(void)
{
	struct document *document = fresh("abc");

	backends_set(document, "ac");
	CU_ASSERT_EQUAL(document_ids_assign(document, DAY_S + 100), 0);
	backends_set(document, "acb");
	CU_ASSERT_EQUAL(document_ids_assign(document, DAY_S + 200), 0);
	CU_ASSERT_EQUAL(id_of(document, "b"), 1);
	CU_ASSERT_EQUAL(document->id_count, 5);
	document_free(document);
}

static void clock_that_jumps_back_frees_nothing_early(void)
{
	struct document *document = fresh("ab");

	backends_set(document, "a");
	CU_ASSERT_EQUAL(document_ids_assign(document, DAY_S), 0);
	backends_set(document, "ac");
	CU_ASSERT_EQUAL(document_ids_assign(document, 10), 0);
	CU_ASSERT_EQUAL(id_of(document, "c"), 2);
	document_free(document);
}

static struct document *read_text(const char *text, bool wanted)
{
	struct document *document = NULL;
	struct config_report report;
	int rc;

	config_report_init(&report, "document", text, strlen(text));
	rc = document_read(&report, &document);
	CU_ASSERT_EQUAL(rc, wanted ? 0 : -EINVAL);
	CU_ASSERT_EQUAL(report.error_count > 0, !wanted);
	if (wanted && rc != 0)
		config_report_print(&report, stdout);
	config_report_free(&report);
	return document;
}

static void document_reads_back_as_itself(void)
{
	struct document *document = fresh("abc");
	struct document_cutover *cutover = document_cutover_add(document, "web");
	struct document *copy, *again;
	char *text, *text_again;
	size_t length, length_again;

	cutover->ring = (struct config_ring){.version = RING_V2, .points = 16};
	cutover->salt = UINT32_MAX;
	cutover->share = 123456;
	document->generation = 42;
	document->snapshot_generation = 41;
	backends_set(document, "bd");
	CU_ASSERT_EQUAL(document_ids_assign(document, DAY_S + 5), 0);
	CU_ASSERT_EQUAL_FATAL(document_write(document, &text, &length), 0);
	again = read_text(text, true);
	CU_ASSERT_PTR_NOT_NULL_FATAL(again);
	CU_ASSERT_EQUAL(again->generation, 42);
	CU_ASSERT_EQUAL(memcmp(again->hash_seed, document->hash_seed, 16), 0);
	CU_ASSERT_EQUAL(document_cutover_find(again, "web")->salt, UINT32_MAX);
	CU_ASSERT_EQUAL(document_cutover_find(again, "web")->share, 123456);
	copy = document_copy(again);
	document_free(again);
	CU_ASSERT_PTR_NOT_NULL_FATAL(copy);
	CU_ASSERT_EQUAL(document_write(copy, &text_again, &length_again), 0);
	CU_ASSERT_STRING_EQUAL(text, text_again);
	document_free(copy);
	document_free(document);
	free(text);
	free(text_again);
}

// Replaces the first occurrence of a word in a good document's text.
static void expect_damage_found(const char *from, const char *to)
{
	struct document *document = fresh("abc");
	char *text = NULL, *spoilt = NULL;
	size_t length;
	char *at;

	document_cutover_add(document, "web")->ring =
		(struct config_ring){.version = RING_V2, .points = 16};
	CU_ASSERT_EQUAL_FATAL(document_write(document, &text, &length), 0);
	at = strstr(text, from);
	CU_ASSERT_PTR_NOT_NULL_FATAL(at);
	CU_ASSERT_TRUE(
		asprintf(&spoilt, "%.*s%s%s", (int)(at - text), text, to, at + strlen(from)) > 0);
	CU_ASSERT_PTR_NULL(read_text(spoilt, false));
	document_free(document);
	free(text);
	free(spoilt);
}

static void damaged_documents_are_refused(void)
{
	expect_damage_found("\"generation\"", "\"generatoin\"");
	expect_damage_found(
		"{\"kind\": \"backend\", \"pool\": \"web\", \"name\": \"a\", \"id\": 0, "
		"\"freed\": 0}, ",
		"");
	expect_damage_found("\"id\": 1", "\"id\": 0");
	expect_damage_found("\"id\": 1", "\"id\": 9999999");
	expect_damage_found("\"share\": \"0%\"", "\"share\": \"101%\"");
	expect_damage_found("\"cutovers\": [{\"pool\": \"web\"", "\"cutovers\": [{\"pool\": \"x\"");
	expect_damage_found("}", "");
}

// Members of a new ring come from a file that is gone once the cutover is staged.
static void members_of_a_cutover_are_the_documents_own(void)
{
	struct document *document = fresh("ab");
	struct document_cutover *cutover = document_cutover_add(document, "web");
	char name[] = "c", tag[] = "x", server[] = "10.0.0.3:80";
	const char *tags[] = {tag};
	struct config_backend member = {
		.name = name, .tags = tags, .tag_count = 1, .server = server, .weight = 1};

	CU_ASSERT_EQUAL_FATAL(document_cutover_members_set(document, cutover, &member, 1), 0);
	name[0] = tag[0] = server[0] = '?';
	CU_ASSERT_STRING_EQUAL(cutover->backends[0].name, "c");
	CU_ASSERT_STRING_EQUAL(cutover->backends[0].tags[0], "x");
	CU_ASSERT_STRING_EQUAL(cutover->backends[0].server, "10.0.0.3:80");
	document_free(document);
}

static void documents_of_two_stores_are_told_apart(void)
{
	struct document *one = NULL, *two = NULL;

	CU_ASSERT_EQUAL_FATAL(document_create(&one), 0);
	CU_ASSERT_EQUAL_FATAL(document_create(&two), 0);
	CU_ASSERT_NOT_EQUAL(memcmp(one->id_space, two->id_space, 16), 0);
	CU_ASSERT_NOT_EQUAL(memcmp(one->hash_seed, two->hash_seed, 16), 0);
	document_free(one);
	document_free(two);
}

int main(void)
{
	static const struct test_case cases[] = {
		{"ids_are_dense_and_stay", ids_are_dense_and_stay},
		{"freed_id_rests_before_it_names_something_else",
			freed_id_rests_before_it_names_something_else},
		{"what_comes_back_in_time_gets_its_own_id_again",
			what_comes_back_in_time_gets_its_own_id_again},
		{"clock_that_jumps_back_frees_nothing_early",
			clock_that_jumps_back_frees_nothing_early},
		{"document_reads_back_as_itself", document_reads_back_as_itself},
		{"damaged_documents_are_refused", damaged_documents_are_refused},
		{"members_of_a_cutover_are_the_documents_own",
			members_of_a_cutover_are_the_documents_own},
		{"documents_of_two_stores_are_told_apart", documents_of_two_stores_are_told_apart},
	};

	return SUITE_RUN("document", cases);
}
