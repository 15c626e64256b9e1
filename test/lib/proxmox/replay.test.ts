import { readdirSync, readFileSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import { decode } from '../../../lib/proxmox/answer.ts'
import { createApi } from '../../../lib/proxmox/api.ts'
import { ProxmoxError } from '../../../lib/proxmox/index.ts'
import type { Call } from '../../../lib/proxmox/request.ts'

// The answers of the real PVE 8.4 and 9.2, put straight into the calls that would get them.

const folder = new URL('../../fixtures/captures/', import.meta.url)

type Exchange = {
  request?: { method: string; path: string }
  response?: { status?: number; reason?: string; body?: unknown }
}
type Answered = { file: string; method: string; path: string; status: number; reason: string; body: unknown }

const answered: Answered[] = ['8', '9'].flatMap((version) =>
  readdirSync(new URL(`${version}/`, folder))
    .filter((file) => /^\d/.test(file))
    .flatMap((file) => {
      const { exchanges }: { exchanges: Exchange[] } = JSON.parse(
        readFileSync(new URL(`${version}/${file}`, folder), 'utf8'),
      )
      return exchanges.flatMap(({ request, response }) =>
        request && response?.status !== undefined
          ? [
              {
                file: `${version}/${file}`,
                method: request.method,
                path: request.path,
                status: response.status,
                reason: response.reason ?? '',
                body: response.body,
              },
            ]
          : [],
      )
    }),
)

// Every call of the api, as it would be sent.
const known: Call<unknown>[] = []
const api = createApi((call) => {
  known.push(call)
  return new Promise(() => {})
})
const vm = { node: 'n', vmid: 9000 }
const at = { node: 'n', storage: 's' }
const task = { node: 'n', upid: 'u' }
api.version()
api.permissions({ path: '/' })
api.nextId({ vmid: 1 })
api.clusterStatus()
api.resources()
api.nodes()
api.vmConfig(vm)
api.vmStatus(vm)
api.clone(vm, { newid: 1 })
api.configure(vm, {})
api.resize(vm, { disk: 'scsi0', size: '1' })
api.start(vm)
api.stop(vm)
api.destroy(vm, { purge: true, 'destroy-unreferenced-disks': true })
api.interfaces(vm)
api.taskStatus(task)
api.tasks({ node: 'n' }, {})
api.cancel(task)
api.storages({ node: 'n' })
api.volumes(at, { vmid: 1, content: 'images' })
api.upload(at, { name: 'a', bytes: Buffer.of() })
api.deleteVolume({ ...at, volume: 'v' })

function callOf({ method, path }: Answered): Call<unknown> | undefined {
  const below = path.replace('/api2/json', '').replace(/\?.*/, '')
  return known.find(({ spec }) => {
    const pattern = spec.path.replace('{volume}', '.+').replace(/\{\w+\}/g, '[^/]+')
    return spec.method === method && new RegExp(`^${pattern}$`).test(below)
  })
}

// Long listings are recorded as a summary, which is no answer.
const whole = ({ body }: Answered) => typeof body === 'object' && body !== null && 'data' in body

function replay(exchange: Answered, call: Call<unknown>): unknown {
  const { status, reason, body } = exchange
  const text = typeof body === 'string' ? body : JSON.stringify(body ?? '')
  try {
    return decode(call, { status, reason, headers: {}, body: text })
  } catch (error) {
    return error
  }
}

const expected = new Map(
  readFileSync(new URL('../../fixtures/words.tsv', import.meta.url), 'utf8')
    .trimEnd()
    .split('\n')
    .map((line) => {
      const [code = '', status = '', , text = '', errors = ''] = line.split('\t')
      return [`${status} ${text} ${errors}`, code]
    }),
)

function judged({ status, reason, body }: Answered): string | undefined {
  const said: { message?: string; errors?: unknown } = typeof body === 'object' && body !== null ? body : {}
  const text = (said.message || reason).trim()
  return expected.get(`${status} ${text} ${said.errors ? JSON.stringify(said.errors) : ''}`)
}

describe('replay', () => {
  const calls = answered.flatMap((exchange) => {
    const call = callOf(exchange)
    return call ? [{ exchange, call }] : []
  })

  test('takes every recorded success', () => {
    const successes = calls.filter(({ exchange }) => exchange.status === 200 && whole(exchange))
    const failed = successes.flatMap(({ exchange, call }) => {
      const result = replay(exchange, call)
      return result instanceof Error
        ? [`${exchange.file} ${exchange.method} ${exchange.path}: ${result.message}`]
        : []
    })
    expect(failed).toEqual([])
    expect(successes.length).toBeGreaterThan(1_700)
    // Every call has met a real answer.
    expect(new Set(successes.map(({ call }) => call.spec)).size).toBe(known.length)
  })

  test('gives every recorded refusal the code that a person gave its words', () => {
    const refusals = calls.filter(({ exchange }) => exchange.status >= 400)
    const wrong = refusals.flatMap(({ exchange, call }) => {
      const result = replay(exchange, call)
      const code = result instanceof ProxmoxError ? result.code : String(result)
      const wanted = judged(exchange)
      return code === wanted
        ? []
        : [`${exchange.file} ${exchange.status} ${exchange.reason}: ${code}, not ${wanted}`]
    })
    expect(wrong).toEqual([])
    expect(refusals.length).toBeGreaterThan(850)
  })
})
