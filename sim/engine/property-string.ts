import type { PropertySchema } from './schema.ts'
import { valueFault } from './verify.ts'

type Parsed = { values: Record<string, string>; fault?: string }

/** Reads `a,key=b,…` by its schema. Source: pve-common JSONSchema.pm parse_property_string. */
export function parseProperties(schema: Record<string, PropertySchema>, text: string): Parsed {
  const values: Record<string, string> = {}
  const failed = (fault: string): Parsed => ({ values, fault })
  const defaultKey = Object.keys(schema).find((key) => schema[key]?.defaultKey)

  for (const part of text.split(',')) {
    if (/^\s*$/.test(part)) continue
    const pair = /^([^=]+)=(.+)$/s.exec(part)
    if (pair) {
      let [, key = '', value = ''] = pair
      if (values[key] !== undefined) return failed(`duplicate key in comma-separated list property: ${key}`)
      const { alias, keyAlias } = schema[key] ?? {}
      if (alias) {
        if (keyAlias) {
          if (values[keyAlias] !== undefined) return failed(`key alias '${keyAlias}' is already defined`)
          values[keyAlias] = key
        }
        key = alias
        if (values[key] !== undefined) return failed(`duplicate key in comma-separated list property: ${key}`)
      }
      const property = schema[key]
      if (!property) return failed(`invalid key in comma-separated list property: ${key}`)
      if (property.type === 'boolean') value = looseBoolean(value)
      values[key] = value
    } else if (!part.includes('=')) {
      if (!defaultKey) return failed('value without key, but schema does not define a default key')
      if (values[defaultKey] !== undefined)
        return failed(`duplicate key in comma-separated list property: ${defaultKey}`)
      values[defaultKey] = schema[defaultKey]?.type === 'boolean' ? looseBoolean(part) : part
    } else {
      return failed('missing key in comma-separated list property')
    }
  }

  const faults: string[] = []
  for (const key of Object.keys(schema).sort()) {
    const property = schema[key]
    if (!property || property.alias) continue
    const value = values[key]
    const fault =
      value === undefined
        ? property.optional
          ? undefined
          : 'property is missing and it is not optional'
        : valueFault(property, value)
    if (fault) faults.push(`${key}: ${fault}`)
  }
  return faults.length > 0 ? failed(`format error\n${faults.join('\n')}`) : { values }
}

function looseBoolean(text: string): string {
  if (/^(?:1|on|yes|true)$/i.test(text)) return '1'
  if (/^(?:0|off|no|false)$/i.test(text)) return '0'
  return text
}
