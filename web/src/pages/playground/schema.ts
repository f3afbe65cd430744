// The arguments of a tool as fields of a form.

import { isRecord } from '$lib/api';

export type Schema = Record<string, unknown>;
export type Tool = { name: string; description: string; input_schema: Schema };
export type Args = Record<string, unknown>;

export type FieldKind = 'line' | 'text' | 'number' | 'boolean' | 'choice' | 'lines' | 'json';
export type FormField = { name: string; kind: FieldKind; isRequired: boolean; about: string; type: string; choices: string[] };

/** Names of arguments that usually have several lines. */
const LONG = /content|code|script|patch|string|diff|body|text|^(old|new|input|command)$/i;

export function fieldsOf(schema: Schema): FormField[] {
  const properties = isRecord(schema.properties) ? schema.properties : {};
  const required = Array.isArray(schema.required) ? schema.required : [];
  const fields = Object.entries(properties).map(([name, value]) => {
    const property = isRecord(value) ? value : {};
    const choices = choicesOf(property);
    const kind = kindOf(name, property, choices);
    const about = typeof property.description === 'string' ? property.description : '';
    const fallback = property.default === undefined || about.includes('Default') ? '' : ` Default: ${JSON.stringify(property.default)}.`;
    return { name, kind, isRequired: required.includes(name), about: about + fallback, type: typeName(property), choices };
  });
  // What is required comes first.
  return fields.sort((a, b) => Number(b.isRequired) - Number(a.isRequired));
}

function choicesOf(property: Schema): string[] {
  if (Array.isArray(property.enum)) return property.enum.filter((one): one is string => typeof one === 'string');
  const variants = Array.isArray(property.oneOf) ? property.oneOf.filter(isRecord) : [];
  const constants = variants.map((one) => one.const);
  return constants.length > 0 && constants.every((one) => typeof one === 'string') ? (constants as string[]) : [];
}

function typesOf(property: Schema): string[] {
  if (typeof property.type === 'string') return [property.type];
  if (Array.isArray(property.type)) return property.type.filter((one): one is string => typeof one === 'string' && one !== 'null');
  const variants = [property.anyOf, property.oneOf].find(Array.isArray) ?? [];
  return [...new Set((variants as unknown[]).filter(isRecord).flatMap(typesOf))].filter((one) => one !== 'null');
}

function kindOf(name: string, property: Schema, choices: string[]): FieldKind {
  if (choices.length > 0) return 'choice';
  const types = typesOf(property);
  if (types.includes('string')) return LONG.test(name) ? 'text' : 'line';
  if (types.includes('boolean')) return 'boolean';
  if (types.includes('integer') || types.includes('number')) return 'number';
  if (types[0] === 'array' && isRecord(property.items) && property.items.type === 'string') return 'lines';
  return 'json';
}

function typeName(property: Schema): string {
  const types = typesOf(property);
  const items = isRecord(property.items) ? typesOf(property.items) : [];
  if (types[0] === 'array') return `list of ${items[0] ?? 'anything'}s`;
  return types.join(' or ') || 'anything';
}

/** Reads what a person typed into a field; undefined if nothing is given. Throws if it cannot be read. */
export function valueOf(field: FormField, text: string): unknown {
  if (text === '') return undefined;
  switch (field.kind) {
    case 'number': {
      const number = Number(text);
      if (!Number.isFinite(number)) throw new Error('This is not a number');
      return number;
    }
    case 'boolean':
      return text === 'true';
    case 'lines':
      return text.split('\n').filter((line) => line !== '');
    case 'json':
      try {
        return JSON.parse(text);
      } catch {
        throw new Error('This is not JSON');
      }
    default:
      return text;
  }
}

/** The text of a value in its field. */
export function textOf(field: FormField, value: unknown): string {
  if (value === undefined) return '';
  if (field.kind === 'lines' && Array.isArray(value)) return value.join('\n');
  return typeof value === 'string' && field.kind !== 'json' ? value : JSON.stringify(value, null, 2);
}
