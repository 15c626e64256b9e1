import { readFileSync } from 'node:fs'

/** One parameter as the API viewer of PVE describes it. */
export type ParamSchema = {
  type?: string
  format?: string | { propertyString: Record<string, PropertySchema> }
  enum?: string[]
  pattern?: string
  min?: number
  max?: number
  minLength?: number
  maxLength?: number
  optional?: boolean
  requires?: string
  in?: 'path' | 'query' | 'body'
  indexRange?: [number, number]
  versions?: string[]
  v8?: ParamSchema
}

export type PropertySchema = ParamSchema & { alias?: string; keyAlias?: string; defaultKey?: boolean }

export type EndpointSchema = {
  method: string
  path: string
  protected: boolean
  proxiedToNode: boolean
  parameters: Record<string, ParamSchema>
}

type FormatSchema = { regex?: string; flags?: string; error?: string; minLength?: number }

type SchemaFile = { formats: Record<string, FormatSchema>; endpoints: EndpointSchema[] }

// A data file of our own, checked by the conformance tests: the shape is known.
const file = JSON.parse(readFileSync(new URL('./proxmox.schema.json', import.meta.url), 'utf8')) as SchemaFile

export const formats = file.formats

/** The parameters of each endpoint, by `METHOD /path`, as that major version has them. */
export function endpointSchemas(version: 8 | 9): Map<string, EndpointSchema> {
  const known = new Map<string, EndpointSchema>()
  for (const endpoint of file.endpoints) {
    const parameters: Record<string, ParamSchema> = {}
    for (const [name, schema] of Object.entries(endpoint.parameters)) {
      if (!schema.versions || schema.versions.includes(String(version)))
        Object.assign(
          parameters,
          spread(name, version === 8 && schema.v8 ? { ...schema, ...schema.v8 } : schema),
        )
    }
    known.set(`${endpoint.method} ${endpoint.path}`, { ...endpoint, parameters })
  }
  return known
}

/** `net[n]` stands for net0, net1, … */
function spread(name: string, schema: ParamSchema): Record<string, ParamSchema> {
  if (!name.endsWith('[n]')) return { [name]: schema }
  const [from, to] = schema.indexRange ?? [0, 0]
  const stem = name.slice(0, -3)
  return Object.fromEntries(
    Array.from({ length: to - from + 1 }, (_, index) => [`${stem}${from + index}`, schema]),
  )
}
