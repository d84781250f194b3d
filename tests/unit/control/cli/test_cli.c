// SPDX-License-Identifier: Apache-2.0
// The command table and everything that is made from it.
#include "control/cli/cli.h"

#include "common/gate.h"
#include "tests/lib/suite.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define WORDS_MAX 12

// One run of the CLI in this process, with both of its streams.
struct run {
	int code;
	char *out;
	char *err;
};

static struct run run_words(char **words)
{
	char *argv[WORDS_MAX + 2] = {"ringway"};
	struct run ret = {0};
	size_t out_bytes, err_bytes;
	int argc = 1;

	for (; words[argc - 1] != NULL; argc++)
		argv[argc] = words[argc - 1];
	FILE *out = open_memstream(&ret.out, &out_bytes);
	FILE *err = open_memstream(&ret.err, &err_bytes);

	ret.code = cli_main(argc, argv, out, err);
	fclose(out);
	fclose(err);
	return ret;
}

#define RUN(...) run_words((char *[]){__VA_ARGS__, NULL})

static void run_free(struct run *run)
{
	free(run->out);
	free(run->err);
}

static void every_command_has_help_man_and_exit_codes(void)
{
	struct run man = RUN("man");

	CU_ASSERT_EQUAL(man.code, 0);
	for (unsigned i = 0; i < cli_command_count; i++) {
		const struct cli_command *command = &cli_commands[i];
		char *words[] = {(char *)command->noun,
			command->verb ? (char *)command->verb : "--help", "--help", NULL};
		struct run help = run_words(words);
		char heading[128];

		CU_ASSERT_EQUAL(help.code, 0);
		CU_ASSERT_PTR_NOT_NULL(strstr(help.out, command->summary));
		CU_ASSERT_PTR_NOT_NULL(strstr(help.out, "exit codes:\n   0  done"));
		CU_ASSERT_PTR_NOT_NULL(strstr(help.out, "--json"));
		CU_ASSERT_STRING_EQUAL(help.err, "");
		CU_ASSERT_EQUAL(command->summary[strlen(command->summary) - 1] == '.', 0);
		snprintf(heading, sizeof(heading), "\n## %s%s%s\n", command->noun,
			command->verb ? " " : "", command->verb ? command->verb : "");
		if (!(command->flags & CLI_HIDDEN))
			CU_ASSERT_PTR_NOT_NULL(strstr(man.out, heading));
		run_free(&help);
	}
	run_free(&man);
}

static void every_option_has_a_text_and_letters_are_unique(void)
{
	for (int i = 0; i < CLI_OPTION_COUNT; i++) {
		const struct cli_option_info *info = &cli_options[i];

		CU_ASSERT_PTR_NOT_NULL_FATAL(info->name);
		CU_ASSERT_PTR_NOT_NULL(info->text);
		CU_ASSERT_EQUAL(info->value == CLI_FLAG, info->argument == NULL);
		for (int j = 0; j < i; j++) {
			CU_ASSERT_STRING_NOT_EQUAL(info->name, cli_options[j].name);
			CU_ASSERT(info->letter == 0 || info->letter != cli_options[j].letter);
		}
	}
}

static void commands_are_found_by_their_words_alone(void)
{
	for (unsigned i = 0; i < cli_command_count; i++) {
		const struct cli_command *command = &cli_commands[i];

		CU_ASSERT_PTR_EQUAL(cli_command_find(command->noun, command->verb), command);
	}
	CU_ASSERT_PTR_NULL(cli_command_find("drop", NULL));
	CU_ASSERT_PTR_NULL(cli_command_find("drop", "lis"));
	CU_ASSERT_PTR_NULL(cli_command_find("", NULL));
}

static void wrong_words_end_with_usage_and_write_no_data(void)
{
	char *const *const cases[] = {
		(char *[]){"nonsense", NULL},
		(char *[]){"drop", NULL},
		(char *[]){"drop", "lst", NULL},
		(char *[]){"drop", "list", "extra", NULL},
		(char *[]){"drop", "list", "--nonsense", NULL},
		(char *[]){"drop", "list", "-o", "xml", NULL},
		(char *[]){"drop", "list", "-o", NULL},
		(char *[]){"--nonsense", "drop", "list", NULL},
		(char *[]){"completion", NULL},
		(char *[]){"completion", "csh", NULL},
		(char *[]){"completion", "", NULL},
	};

	for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct run run = run_words((char **)cases[i]);

		CU_ASSERT_EQUAL(run.code, ANSWER_USAGE);
		CU_ASSERT_STRING_EQUAL(run.out, "");
		CU_ASSERT_EQUAL(strncmp(run.err, "ringway: ", 9), 0);
		run_free(&run);
	}
}

static void options_may_stand_before_and_after_the_words(void)
{
	struct run before = RUN("--json", "drop", "list");
	struct run after = RUN("drop", "list", "-o", "json");

	CU_ASSERT_EQUAL(before.code, 0);
	CU_ASSERT_STRING_EQUAL(before.out, after.out);
	run_free(&before);
	run_free(&after);
}

static void json_carries_a_schema_version_and_every_format_works(void)
{
	struct run json = RUN("drop", "list", "--json");
	json_t *object = json_loads(json.out, 0, NULL);

	CU_ASSERT_PTR_NOT_NULL_FATAL(object);
	CU_ASSERT_EQUAL(json_integer_value(json_object_get(object, "schema_version")), 1);
	CU_ASSERT(json_array_size(json_object_get(object, "drops")) > 30);
	json_decref(object);
	run_free(&json);
	for (int i = 0; i < OUTPUT_COUNT; i++) {
		struct run run = RUN("drop", "list", "-o", (char *)output_format_name(i));

		CU_ASSERT_EQUAL(run.code, 0);
		CU_ASSERT_PTR_NOT_NULL(strstr(run.out, "runt"));
		run_free(&run);
	}
}

static void shares_are_exact_to_a_millionth(void)
{
	static const struct {
		const char *text;
		int64_t share;
	} cases[] = {
		{"0", 0},
		{"1", 1000000},
		{"100%", 1000000},
		{"0%", 0},
		{"10%", 100000},
		{"12.5%", 125000},
		{"0.125", 125000},
		{"0.0001%", 1},
		{"0.000001", 1},
		{"1.00000000", 1000000},
		{"99.9999%", 999999},
		{".5", 500000},
		{"0.00001%", -EINVAL},
		{"0.0000001", -EINVAL},
		{"0.00000010", -EINVAL},
		{"101%", -EINVAL},
		{"1.1", -EINVAL},
		{"100.0001%", -EINVAL},
		{"", -EINVAL},
		{"%", -EINVAL},
		{".", -EINVAL},
		{"-1%", -EINVAL},
		{"1e1%", -EINVAL},
		{"10 %", -EINVAL},
		{"10%%", -EINVAL},
		{"99999999999999999999%", -EINVAL},
	};

	for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		CU_ASSERT_EQUAL(cli_share_parse(cases[i].text), cases[i].share);
	CU_ASSERT_EQUAL(GATE_SHARE_ALL, 1000000);
}

static void numbers_are_bounded_and_whole(void)
{
	struct cli cli = {.out = stdout, .err = fopen("/dev/null", "w")};
	static const char *const refused[] = {
		"0", "11", "1x", "x", "-1", "+1", " 1", "1.0", "99999999999999999999999"};
	uint64_t number = 77;

	CU_ASSERT_EQUAL(cli_number(&cli, CLI_WEIGHT, 1, 10, &number), ANSWER_DONE);
	CU_ASSERT_EQUAL(number, 77);
	for (unsigned i = 0; i < sizeof(refused) / sizeof(refused[0]); i++) {
		cli.value[CLI_WEIGHT] = refused[i];
		CU_ASSERT_EQUAL(cli_number(&cli, CLI_WEIGHT, 1, 10, &number), ANSWER_USAGE);
		CU_ASSERT_EQUAL(number, 77);
	}
	cli.value[CLI_WEIGHT] = "10";
	CU_ASSERT_EQUAL(cli_number(&cli, CLI_WEIGHT, 1, 10, &number), ANSWER_DONE);
	CU_ASSERT_EQUAL(number, 10);
	fclose(cli.err);
}

static void values_are_shown_in_the_unit_of_their_name(void)
{
	static const struct {
		const char *field;
		double value;
		const char *text;
	} cases[] = {
		{"memory_bytes", 96 * 1024, "96.0 KiB"},
		{"points_bytes", 17, "17 B"},
		{"share_ppm", 125000, "12.5 %"},
		{"owned_share", 0.25, "25 %"},
		{"hottest_ratio", 2.3183, "2.318x"},
		{"build_ns", 3400000, "3.4 ms"},
		{"cv", 0.24871, "0.2487"},
	};

	for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		json_t *value = json_real(cases[i].value);
		char *text = output_text(cases[i].field, value, false);

		CU_ASSERT_STRING_EQUAL(text, cases[i].text);
		free(text);
		json_decref(value);
	}
}

static void yaml_quotes_what_readers_would_take_for_another_type(void)
{
	json_t *value = json_pack("{s:s, s:s, s:s, s:i, s:[], s:b}", "country", "no", "time",
		"22:22", "plain", "web one", "number", 5, "none", "flag", 1);
	size_t bytes;
	char *text;
	FILE *out = open_memstream(&text, &bytes);

	CU_ASSERT_EQUAL(output_yaml(out, value), 0);
	fclose(out);
	CU_ASSERT_PTR_NOT_NULL(strstr(text, "country: \"no\"\n"));
	CU_ASSERT_PTR_NOT_NULL(strstr(text, "time: \"22:22\"\n"));
	CU_ASSERT_PTR_NOT_NULL(strstr(text, "plain: web one\n"));
	CU_ASSERT_PTR_NOT_NULL(strstr(text, "number: 5\n"));
	CU_ASSERT_PTR_NOT_NULL(strstr(text, "flag: true\n"));
	free(text);
	json_decref(value);
}

int main(void)
{
	static const struct test_case cases[] = {
		{"every_command_has_help_man_and_exit_codes",
			every_command_has_help_man_and_exit_codes},
		{"every_option_has_a_text_and_letters_are_unique",
			every_option_has_a_text_and_letters_are_unique},
		{"commands_are_found_by_their_words_alone",
			commands_are_found_by_their_words_alone},
		{"wrong_words_end_with_usage_and_write_no_data",
			wrong_words_end_with_usage_and_write_no_data},
		{"options_may_stand_before_and_after_the_words",
			options_may_stand_before_and_after_the_words},
		{"json_carries_a_schema_version_and_every_format_works",
			json_carries_a_schema_version_and_every_format_works},
		{"shares_are_exact_to_a_millionth", shares_are_exact_to_a_millionth},
		{"numbers_are_bounded_and_whole", numbers_are_bounded_and_whole},
		{"values_are_shown_in_the_unit_of_their_name",
			values_are_shown_in_the_unit_of_their_name},
		{"yaml_quotes_what_readers_would_take_for_another_type",
			yaml_quotes_what_readers_would_take_for_another_type},
	};

	return SUITE_RUN("cli", cases);
}
