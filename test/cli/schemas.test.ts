import { readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { parse } from 'yaml'
import { schemaFiles } from '../../cli/schemas.ts'
import { loadConfig } from '../../lib/config.ts'

const root = new URL('../../', import.meta.url)

describe('schemas', () => {
  it.each(Object.entries(schemaFiles()))('%s is up to date (else: npm run schemas)', (path, text) => {
    expect(readFileSync(new URL(path, root), 'utf8')).toBe(text)
  })

  it('describe every reference that the AsyncAPI document makes', () => {
    const files = schemaFiles()
    const document = parse(files['docs/events/asyncapi.yaml'] ?? '')
    const payloads = Object.values<{ payload: { $ref: string } }>(document.components.messages)
    expect(payloads).toHaveLength(6)
    for (const { payload } of payloads)
      expect(files).toHaveProperty([payload.$ref.replace('./', 'docs/events/')])
  })

  it('let no unknown field pass, as the events themselves do not', () => {
    for (const [path, text] of Object.entries(schemaFiles())) {
      if (path.endsWith('.json')) expect(JSON.parse(text).additionalProperties, path).toBe(false)
    }
  })

  it.each(['local', 'example'])('config/%s.yml is a usable configuration', (name) => {
    const config = loadConfig(new URL(`config/${name}.yml`, root).pathname)
    expect(Object.keys(config.zones).length).toBeGreaterThan(0)
  })
})
