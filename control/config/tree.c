// SPDX-License-Identifier: Apache-2.0
#include "control/config/tree.h"

#include "control/config/report.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <yaml.h>

// Events become nodes; open maps and lists wait on a stack, so depth is bounded without recursion.
struct builder {
	yaml_parser_t parser;
	struct config_report *report;
	struct config_tree *tree;
	struct tree_node *stack[TREE_DEPTH_MAX];
	uint32_t depth;
	uint32_t node_count;
	// The key that waits for its value, for each open map.
	const char *key[TREE_DEPTH_MAX];
	struct tree_mark key_mark[TREE_DEPTH_MAX];
	bool document_seen;
	int error; // 0, -EINVAL or -ENOMEM: stop
};

static struct tree_mark mark_of(yaml_mark_t start, yaml_mark_t end)
{
	struct tree_mark mark = {
		.line = (uint32_t)start.line + 1,
		.column = (uint32_t)start.column + 1,
		.width = 1,
	};

	if (end.line == start.line && end.column > start.column)
		mark.width = (uint32_t)(end.column - start.column);
	return mark;
}

static void refuse(struct builder *b, enum config_code code, struct tree_mark mark,
	const char *hint, const char *text)
{
	config_report_add_at(b->report, code, &mark, hint, text);
	b->error = -EINVAL;
}

static struct tree_node *node_add(struct builder *b, enum tree_kind kind, struct tree_mark mark)
{
	struct tree_node *parent = b->depth > 0 ? b->stack[b->depth - 1] : NULL;
	struct tree_node *node;

	if (++b->node_count > TREE_NODES_MAX) {
		refuse(b, CONFIG_LIMIT, mark, NULL, "the file holds too many items");
		return NULL;
	}
	node = arena_take(b->tree->arena, sizeof(*node));
	if (node == NULL) {
		b->error = -ENOMEM;
		return NULL;
	}
	node->kind = kind;
	node->mark = mark;
	if (parent == NULL) {
		b->tree->root = node;
		return node;
	}
	if (parent->kind == TREE_MAP) {
		node->key = b->key[b->depth - 1];
		node->key_mark = b->key_mark[b->depth - 1];
		b->key[b->depth - 1] = NULL;
	}
	if (parent->last == NULL)
		parent->first = node;
	else
		parent->last->next = node;
	parent->last = node;
	parent->count++;
	return node;
}

// A map waits for a key when its last key has got its value.
static bool wants_key(const struct builder *b)
{
	return b->depth > 0 && b->stack[b->depth - 1]->kind == TREE_MAP &&
		b->key[b->depth - 1] == NULL;
}

static void open_node(struct builder *b, enum tree_kind kind, struct tree_mark mark)
{
	struct tree_node *node;

	if (wants_key(b)) {
		refuse(b, CONFIG_FEATURE, mark, NULL, "a key must be plain text");
		return;
	}
	if (b->depth == TREE_DEPTH_MAX) {
		refuse(b, CONFIG_LIMIT, mark, NULL, "nested more than 16 levels deep");
		return;
	}
	node = node_add(b, kind, mark);
	if (node == NULL)
		return;
	b->key[b->depth] = NULL;
	b->stack[b->depth++] = node;
}

static void take_scalar(struct builder *b, const yaml_event_t *event, struct tree_mark mark)
{
	const char *value = (const char *)event->data.scalar.value;
	size_t length = event->data.scalar.length;
	struct tree_node *node;
	char *text;

	if (length > TREE_SCALAR_MAX) {
		refuse(b, CONFIG_LIMIT, mark, NULL, "a value is longer than 4096 bytes");
		return;
	}
	if (memchr(value, 0, length) != NULL) {
		refuse(b, CONFIG_BAD_VALUE, mark, NULL, "a value holds a zero byte");
		return;
	}
	text = arena_text(b->tree->arena, value, length);
	if (text == NULL) {
		b->error = -ENOMEM;
		return;
	}
	if (wants_key(b)) {
		if (strcmp(text, "<<") == 0) {
			refuse(b, CONFIG_FEATURE, mark, "write the keys out",
				"merge keys are not taken");
			return;
		}
		b->key[b->depth - 1] = text;
		b->key_mark[b->depth - 1] = mark;
		return;
	}
	node = node_add(b, TREE_SCALAR, mark);
	if (node == NULL)
		return;
	node->text = text;
	node->quoted = event->data.scalar.style != YAML_PLAIN_SCALAR_STYLE;
}

// Anchors, tags and aliases would give a text a second meaning; none is taken.
static bool event_is_plain(struct builder *b, const yaml_event_t *event, struct tree_mark mark)
{
	const yaml_char_t *anchor = NULL, *tag = NULL;

	switch (event->type) {
	case YAML_ALIAS_EVENT:
		refuse(b, CONFIG_FEATURE, mark, "write the value out", "aliases are not taken");
		return false;
	case YAML_SCALAR_EVENT:
		anchor = event->data.scalar.anchor;
		tag = event->data.scalar.tag;
		break;
	case YAML_SEQUENCE_START_EVENT:
		anchor = event->data.sequence_start.anchor;
		tag = event->data.sequence_start.tag;
		break;
	case YAML_MAPPING_START_EVENT:
		anchor = event->data.mapping_start.anchor;
		tag = event->data.mapping_start.tag;
		break;
	default:
		break;
	}
	if (anchor != NULL)
		refuse(b, CONFIG_FEATURE, mark, "remove the &name", "anchors are not taken");
	else if (tag != NULL)
		refuse(b, CONFIG_FEATURE, mark, "remove it: every key has its type already",
			"tags are not taken");
	return anchor == NULL && tag == NULL;
}

static void take_event(struct builder *b, const yaml_event_t *event)
{
	struct tree_mark mark = mark_of(event->start_mark, event->end_mark);

	if (!event_is_plain(b, event, mark))
		return;
	switch (event->type) {
	case YAML_DOCUMENT_START_EVENT:
		if (b->document_seen)
			refuse(b, CONFIG_FEATURE, mark, "put it into one document",
				"a second document starts here");
		b->document_seen = true;
		break;
	case YAML_SEQUENCE_START_EVENT:
		open_node(b, TREE_LIST, mark);
		break;
	case YAML_MAPPING_START_EVENT:
		open_node(b, TREE_MAP, mark);
		break;
	case YAML_SEQUENCE_END_EVENT:
	case YAML_MAPPING_END_EVENT:
		b->depth--;
		break;
	case YAML_SCALAR_EVENT:
		take_scalar(b, event, mark);
		break;
	default:
		break;
	}
}

static void take_syntax_error(struct builder *b)
{
	const yaml_parser_t *p = &b->parser;
	struct tree_mark mark = mark_of(p->problem_mark, p->problem_mark);
	char text[256];

	if (p->error == YAML_MEMORY_ERROR) {
		b->error = -ENOMEM;
		return;
	}
	if (p->error == YAML_READER_ERROR)
		snprintf(text, sizeof(text), "not UTF-8 text: %s at byte %zu", p->problem,
			p->problem_offset);
	else if (p->context != NULL)
		snprintf(text, sizeof(text), "%s: %s", p->context, p->problem);
	else
		snprintf(text, sizeof(text), "%s", p->problem);
	refuse(b, CONFIG_SYNTAX, mark, NULL, text);
}

static void read_events(struct builder *b)
{
	bool done = false;

	while (!done && b->error == 0) {
		yaml_event_t event;

		if (yaml_parser_parse(&b->parser, &event) == 0) {
			take_syntax_error(b);
			return;
		}
		done = event.type == YAML_STREAM_END_EVENT;
		take_event(b, &event);
		yaml_event_delete(&event);
	}
}

// An empty text is an empty map; any other root than a map is refused.
static void check_root(struct builder *b)
{
	struct tree_mark start = {1, 1, 1};
	struct tree_node *root = b->tree->root;

	if (root == NULL) {
		b->tree->root = node_add(b, TREE_MAP, start);
	} else if (root->kind == TREE_SCALAR && !root->quoted && root->text[0] == '\0') {
		root->kind = TREE_MAP;
	} else if (root->kind != TREE_MAP) {
		refuse(b, CONFIG_WRONG_KIND, root->mark, NULL,
			"the file must be a map of keys and values");
	}
}

int tree_read(
	const char *text, size_t length, struct config_report *report, struct config_tree **ret)
{
	struct builder b = {.report = report};

	b.tree = calloc(1, sizeof(*b.tree));
	if (b.tree == NULL)
		return -ENOMEM;
	b.tree->arena = arena_create();
	if (b.tree->arena == NULL || yaml_parser_initialize(&b.parser) == 0) {
		tree_free(b.tree);
		return -ENOMEM;
	}
	yaml_parser_set_encoding(&b.parser, YAML_UTF8_ENCODING);
	yaml_parser_set_input_string(&b.parser, (const unsigned char *)text, length);
	read_events(&b);
	yaml_parser_delete(&b.parser);
	if (b.error == 0)
		check_root(&b);
	if (b.error != 0) {
		tree_free(b.tree);
		return b.error;
	}
	*ret = b.tree;
	return 0;
}

void tree_free(struct config_tree *tree)
{
	if (tree == NULL)
		return;
	arena_free(tree->arena);
	free(tree);
}

static const struct tree_node *child_by_key(
	const struct tree_node *map, const char *key, size_t length)
{
	const struct tree_node *child;

	if (map->kind != TREE_MAP)
		return NULL;
	for (child = map->first; child != NULL; child = child->next) {
		if (strncmp(child->key, key, length) == 0 && child->key[length] == '\0')
			return child;
	}
	return NULL;
}

static const struct tree_node *child_by_index(const struct tree_node *list, unsigned long index)
{
	const struct tree_node *child;

	if (list->kind != TREE_LIST)
		return NULL;
	for (child = list->first; child != NULL && index > 0; child = child->next)
		index--;
	return child;
}

const struct tree_node *tree_find(const struct config_tree *tree, const char *path, bool *ret_whole)
{
	const struct tree_node *node = tree->root;

	*ret_whole = false;
	while (*path != '\0') {
		const struct tree_node *child;
		size_t length;

		if (*path == '[') {
			char *end;

			child = child_by_index(node, strtoul(path + 1, &end, 10));
			length = (size_t)(end - path) + (*end == ']');
		} else {
			path += *path == '.';
			length = strcspn(path, ".[");
			child = child_by_key(node, path, length);
		}
		if (child == NULL)
			return node;
		node = child;
		path += length;
	}
	*ret_whole = true;
	return node;
}
