/* Value types; see tool_schema.h.
 *
 * A schema is reduced to the set of JSON types it allows: `type`, `enum` and `const` name types, `anyOf` and `oneOf`
 * join sets, `allOf` and everything that stands side by side cuts them down. Constraints inside a type (ranges,
 * patterns, items) do not matter here: a value of the right type that breaks them is the tool's to refuse. Schemas come
 * from clients and may refer to themselves, so the walk has a budget; what is left undecided allows any type. */
#include "text/tool_schema.h"


/* ---- from schema to type set */

typedef struct walk {
    const json *root;    /* `parameters`, the document that $ref points into */
    int budget;          /* schemas still to be looked at */
    const json *choices; /* first enum met */
} walk;

static unsigned schema_kinds(walk *w, const json *schema);

static unsigned named_kinds(const json *name) {
    static const struct {
        const char *name;
        unsigned kinds;
    } types[] = {
        {"string", VALUE_STRING}, {"integer", VALUE_INTEGER}, {"number", VALUE_NUMBER}, {"boolean", VALUE_BOOLEAN},
        {"null", VALUE_NULL},     {"array", VALUE_ARRAY},     {"object", VALUE_OBJECT}, {"str", VALUE_STRING},
        {"int", VALUE_INTEGER},   {"float", VALUE_NUMBER},    {"bool", VALUE_BOOLEAN},  {"list", VALUE_ARRAY},
        {"dict", VALUE_OBJECT},   {"double", VALUE_NUMBER},
    };
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (json_string_is(name, types[i].name)) return types[i].kinds;
    return VALUE_ANY;
}

/* A number without a fraction: 3, 1e3, 5.0, 1200e-2. JSON schema counts by value, not by spelling. */
static bool is_integral(span number) {
    int64_t exponent = 0;
    size_t end = 0, fraction = 0, zeros = 0;
    bool point = false, nonzero = false;
    for (; end < number.size && number.data[end] != 'e' && number.data[end] != 'E'; end++) {
        char c = number.data[end];
        if (c == '.') point = true;
        if (c < '0' || c > '9') continue;
        fraction += point;
        zeros = c == '0' ? zeros + 1 : 0;
        nonzero |= c != '0';
    }
    if (!nonzero) return true;
    bool negative = false;
    for (size_t i = end + (end < number.size); i < number.size; i++) {
        if (number.data[i] == '-') negative = true;
        if (number.data[i] >= '0' && number.data[i] <= '9' && exponent < 1000000000)
            exponent = exponent * 10 + (number.data[i] - '0');
    }
    if (negative) exponent = -exponent;
    return (int64_t)fraction - exponent <= (int64_t)zeros;
}

static unsigned kind_of(const json *value) {
    switch (value->type) {
        case JSON_NULL:
            return VALUE_NULL;
        case JSON_FALSE:
        case JSON_TRUE:
            return VALUE_BOOLEAN;
        case JSON_NUMBER:
            return is_integral(value->text) ? VALUE_INTEGER : VALUE_FRACTION;
        case JSON_STRING:
            return VALUE_STRING;
        case JSON_ARRAY:
            return VALUE_ARRAY;
        default:
            return VALUE_OBJECT;
    }
}

static unsigned type_kinds(const json *type) {
    if (!json_is(type, JSON_ARRAY)) return json_is(type, JSON_STRING) ? named_kinds(type) : VALUE_ANY;
    unsigned kinds = 0;
    for (const json *name = type->first; name; name = name->next) kinds |= named_kinds(name);
    return kinds ? kinds : VALUE_ANY;
}

static unsigned enum_kinds(walk *w, const json *choices) {
    if (!json_is(choices, JSON_ARRAY) || !choices->count) return VALUE_ANY;
    if (!w->choices) w->choices = choices;
    unsigned kinds = 0;
    for (const json *choice = choices->first; choice; choice = choice->next) kinds |= kind_of(choice);
    return kinds;
}

/* One step of a JSON pointer: "~1" is "/", "~0" is "~"; on an array the step is an index. */
static const json *pointer_step(const json *at, span step) {
    if (json_is(at, JSON_ARRAY)) {
        uint32_t index = 0;
        for (size_t i = 0; i < step.size; i++) {
            if (step.data[i] < '0' || step.data[i] > '9' || index > 100000) return NULL;
            index = index * 10 + (uint32_t)(step.data[i] - '0');
        }
        return json_at(at, index);
    }
    buffer key = {0};
    for (size_t i = 0; i < step.size; i++) {
        bool escape = step.data[i] == '~' && i + 1 < step.size;
        if (escape) i++;
        buffer_char(&key, !escape ? step.data[i] : step.data[i] == '1' ? '/' : '~');
    }
    const json *found = json_get_span(at, span_make(key.data ? key.data : "", key.size));
    buffer_deinit(&key);
    return found;
}

static const json *resolve(const json *root, span reference) {
    if (reference.size == 0 || reference.data[0] != '#') return NULL;
    const json *at = root;
    for (size_t i = 1; i < reference.size && at;) {
        if (reference.data[i] != '/') return NULL;
        size_t start = ++i;
        while (i < reference.size && reference.data[i] != '/') i++;
        at = pointer_step(at, span_make(reference.data + start, i - start));
    }
    return at;
}

static unsigned union_kinds(walk *w, const json *schemas) {
    if (!json_is(schemas, JSON_ARRAY) || !schemas->count) return VALUE_ANY;
    unsigned kinds = 0;
    for (const json *schema = schemas->first; schema; schema = schema->next) kinds |= schema_kinds(w, schema);
    return kinds;
}

static unsigned schema_kinds(walk *w, const json *schema) {
    if (!json_is(schema, JSON_OBJECT) || w->budget-- <= 0) return VALUE_ANY;
    unsigned kinds = type_kinds(json_get(schema, "type"));
    kinds &= enum_kinds(w, json_get(schema, "enum"));
    const json *constant = json_get(schema, "const"), *reference = json_get(schema, "$ref");
    if (constant) kinds &= kind_of(constant);
    kinds &= union_kinds(w, json_get(schema, "anyOf"));
    kinds &= union_kinds(w, json_get(schema, "oneOf"));
    const json *all = json_get(schema, "allOf");
    for (const json *one = json_is(all, JSON_ARRAY) ? all->first : NULL; one; one = one->next)
        kinds &= schema_kinds(w, one);
    if (json_is(reference, JSON_STRING)) kinds &= schema_kinds(w, resolve(w->root, reference->text));
    if (json_is(json_get(schema, "nullable"), JSON_TRUE)) kinds |= VALUE_NULL;
    return kinds;
}

/* The property's schema, also where `parameters` itself is a $ref or an allOf. */
static const json *find_property(walk *w, const json *schema, span key) {
    if (!json_is(schema, JSON_OBJECT) || w->budget-- <= 0) return NULL;
    const json *found = json_get_span(json_get(schema, "properties"), key);
    if (found) return found;
    const json *reference = json_get(schema, "$ref"), *all = json_get(schema, "allOf");
    if (json_is(reference, JSON_STRING)) found = find_property(w, resolve(w->root, reference->text), key);
    for (const json *one = json_is(all, JSON_ARRAY) ? all->first : NULL; one && !found; one = one->next)
        found = find_property(w, one, key);
    return found;
}

enum { SCHEMA_BUDGET = 1000 };

value_type tool_value_type(const json *function, span key) {
    const json *parameters = json_get(function, "parameters");
    walk w = {.root = parameters, .budget = SCHEMA_BUDGET};
    const json *schema = find_property(&w, parameters, key);
    bool declared = schema != NULL;
    if (!declared) schema = json_get(parameters, "additionalProperties");
    if (!declared && !json_is(schema, JSON_OBJECT)) return (value_type){.kinds = VALUE_STRING};
    unsigned kinds = schema_kinds(&w, schema);
    return (value_type){.kinds = kinds ? kinds : VALUE_ANY, .choices = w.choices, .declared = declared};
}

const json *tool_find(const json *tools, span name) {
    for (const json *tool = json_is(tools, JSON_ARRAY) ? tools->first : NULL; tool; tool = tool->next) {
        const json *function = json_get(tool, "function"), *own = json_get(function, "name");
        if (json_is(own, JSON_STRING) && span_equal(own->text, name)) return function;
    }
    return NULL;
}

/* ---- from text to value */

static bool is_space(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }

static span trim(span text) {
    while (text.size && is_space(text.data[0])) text.data++, text.size--;
    while (text.size && is_space(text.data[text.size - 1])) text.size--;
    return text;
}

static bool is_number_byte(char c) {
    return (c >= '0' && c <= '9') || c == '-' || c == '+' || c == '.' || c == 'e' || c == 'E';
}

static bool may_become(span text, const char *word) { return span_starts(span_text(word), text); }

static bool may_become_number(span text, size_t *scanned) {
    while (*scanned < text.size && is_number_byte(text.data[*scanned])) ++*scanned;
    return *scanned == text.size;
}

bool tool_value_is_string(value_type type, span text, size_t *scanned) {
    if (!(type.kinds & VALUE_STRING)) return false;
    if (type.kinds == VALUE_STRING) return true;
    if (text.size == 0) return false;
    switch (text.data[0]) {
        case '{':
            return !(type.kinds & VALUE_OBJECT);
        case '[':
            return !(type.kinds & VALUE_ARRAY);
        case 't':
            return !(type.kinds & VALUE_BOOLEAN && may_become(text, "true"));
        case 'f':
            return !(type.kinds & VALUE_BOOLEAN && may_become(text, "false"));
        case 'n':
            return !(type.kinds & VALUE_NULL && may_become(text, "null"));
        default:
            return !(type.kinds & VALUE_NUMBER && may_become_number(text, scanned));
    }
}

/* Python's spelling of the three literals, which models trained on Python write, becomes JSON's. Not where a string is
 * allowed too: there the text means itself. */
static const char *python_literal(value_type type, span text) {
    if (type.kinds & VALUE_BOOLEAN && span_is(text, "True")) return "true";
    if (type.kinds & VALUE_BOOLEAN && span_is(text, "False")) return "false";
    return type.kinds & VALUE_NULL && span_is(text, "None") ? "null" : NULL;
}

/* An enum that holds the text as a string means that string, even if it also reads as a number. */
static bool is_string_choice(value_type type, span text) {
    for (const json *choice = type.choices ? type.choices->first : NULL; choice; choice = choice->next)
        if (choice->type == JSON_STRING && span_equal(choice->text, text)) return true;
    return false;
}

static bool is_allowed_json(value_type type, span text) {
    if (text.size == 0) return false;
    arena *a = arena_create();
    const json *value;
    bool allowed = json_parse(a, text, JSON_DEPTH_DEFAULT, &value, NULL) == ERR_OK && (kind_of(value) & type.kinds);
    arena_destroy(a);
    return allowed;
}

void tool_value_write(buffer *out, value_type type, span text) {
    size_t scanned = 0;
    span inner = trim(text);
    bool string = tool_value_is_string(type, text, &scanned) || is_string_choice(type, text);
    const char *literal = string ? NULL : python_literal(type, inner);
    if (literal)
        buffer_text(out, literal);
    else if (!string && is_allowed_json(type, inner))
        buffer_append(out, inner.data, inner.size);
    else
        json_write_string(out, text, JSON_COMPACT);
}
