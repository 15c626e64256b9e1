import type { ParamValue } from '../types.ts'
import { refuseParams } from './errors.ts'
import { formatFault } from './formats.ts'
import type { EndpointSchema, ParamSchema } from './schema.ts'

/** Refuses what the schema refuses, in PVE's words. Source: pve-common JSONSchema.pm validate, check_prop, check_object. */
export function verify(schema: EndpointSchema, params: Record<string, ParamValue>): void {
  const errors: Record<string, string> = {}
  const add = (name: string, text: string): void => {
    errors[name] = errors[name] === undefined ? text : `${errors[name]}\\n${text}`
  }
  for (const name of Object.keys(schema.parameters).sort()) {
    const parameter = schema.parameters[name]
    if (!parameter) continue
    const value = params[name]
    if (value === undefined) {
      if (!parameter.optional) add(name, 'property is missing and it is not optional')
      continue
    }
    const fault = valueFault(parameter, value)
    if (fault) add(name, fault)
  }
  for (const [name, value] of Object.entries(params)) {
    const parameter = schema.parameters[name]
    if (value === undefined) continue
    if (!parameter)
      add(name, 'property is not defined in schema and the schema does not allow additional properties')
    else if (parameter.requires && params[parameter.requires] === undefined)
      add(parameter.requires, `missing property required by '${name}'`)
  }
  if (Object.keys(errors).length > 0) refuseParams(errors)
}

/** What is wrong with one value: the first of type, format, pattern, length, range, enumeration. */
export function valueFault(schema: ParamSchema, given: ParamValue): string | undefined {
  if (Array.isArray(given)) return listFault(schema, given)
  const value = given === true ? '1' : given === false ? '0' : String(given)
  if (!hasType(schema.type, value)) return `type check ('${schema.type}') failed - got '${value}'`
  if (schema.format) {
    const fault = formatFault(schema.format, value)
    if (fault) return `invalid format - ${fault}\n`
  }
  if (schema.pattern && !pattern(schema.pattern).test(value)) return 'value does not match the regex pattern'
  if (schema.maxLength !== undefined && [...value].length > schema.maxLength)
    return `value may only be ${schema.maxLength} characters long`
  if (schema.minLength !== undefined && [...value].length < schema.minLength)
    return `value must be at least ${schema.minLength} characters long`
  if (schema.type === 'integer' || schema.type === 'number') {
    if (schema.max !== undefined && Number(value) > schema.max)
      return `value must have a maximum value of ${schema.max}`
    if (schema.min !== undefined && Number(value) < schema.min)
      return `value must have a minimum value of ${schema.min}`
  }
  if (schema.enum && !schema.enum.includes(value))
    return `value '${value}' does not have a value in the enumeration '${schema.enum.join(', ')}'`
  return undefined
}

/** A parameter given several times is taken where the format is a list. */
function listFault(schema: ParamSchema, given: string[]): string | undefined {
  const isList = typeof schema.format === 'string' && schema.format.endsWith('-list')
  return isList ? valueFault(schema, given.join(',')) : `type check ('${schema.type}') failed - got ARRAY`
}

function hasType(type: string | undefined, value: string): boolean {
  if (type === 'integer') return /^[+-]?\d+$/.test(value)
  if (type === 'number') return /^[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?$/.test(value)
  if (type === 'boolean') return value === '0' || value === '1'
  return true
}

/** Perl writes flags as `(?^:…)` and takes `{,8}`, which a RegExp does not. */
function pattern(perl: string): RegExp {
  return new RegExp(`^(?:${perl.replaceAll('(?^:', '(?:').replaceAll('{,', '{0,')})$`)
}
