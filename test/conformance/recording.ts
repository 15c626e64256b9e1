import { readFileSync } from 'node:fs'

export type RecordedRequest = {
  method: string
  path: string
  headers?: Record<string, string> | string[]
  body?: unknown
}
export type RecordedAnswer = {
  status: number | null
  reason: string | null
  body: unknown
  headers?: Record<string, string>
}

/** One exchange, or something that happened on the machine, at `t` seconds. */
export type Recorded = {
  label?: string
  event?: string
  t?: number
  took?: number
  request?: RecordedRequest
  response?: RecordedAnswer
}

export type Recording = { scenario: string; pve: string; notes: string; exchanges: Recorded[] }

/** A recorded scenario as it lies in test/fixtures/captures. */
export function recording(version: 8 | 9, scenario: string): Recording {
  const url = new URL(`../fixtures/captures/${version}/${scenario}.json`, import.meta.url)
  // The files are part of the tests: their shape is known.
  return JSON.parse(readFileSync(url, 'utf8')) as Recording
}

export function scenarios(version: 8 | 9): string[] {
  const url = new URL(`../fixtures/captures/${version}/INDEX.json`, import.meta.url)
  const index = JSON.parse(readFileSync(url, 'utf8')) as { file: string }[]
  return index.map(({ file }) => file.replace('.json', ''))
}
