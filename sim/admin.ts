import { createServer, type IncomingMessage } from 'node:http'
import type { AddressInfo } from 'node:net'
import { typeLine } from './shell-line.ts'
import type { FaultRule, NodeState, Sim } from './types.ts'

export type Admin = { url: string; close(): Promise<void> }

class AdminError extends Error {
  status: number
  constructor(status: number, message: string) {
    super(message)
    this.name = 'AdminError'
    this.status = status
  }
}

const states = new Set(['up', 'down', 'unreachable', 'hung', 'no-quorum'])

/** A door for scripts and the command line: JSON over HTTP, on 127.0.0.1 only. */
export async function listenAdmin(sim: Sim, { port = 0 } = {}): Promise<Admin> {
  const server = createServer((request, response) => {
    answer(sim, request)
      .then((body) => ({ status: 200, body }))
      .catch((error: unknown) => {
        if (error instanceof AdminError) return { status: error.status, body: { error: error.message } }
        return { status: 500, body: { error: String(error) } }
      })
      .then(({ status, body }) => {
        response.writeHead(status, { 'content-type': 'application/json' })
        response.end(`${JSON.stringify(body ?? null)}\n`)
      })
  })
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject)
    server.listen(port, '127.0.0.1', resolve)
  })
  // A TCP server that listens has an address with a port.
  const { port: taken } = server.address() as AddressInfo
  return {
    url: `http://127.0.0.1:${taken}`,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve())
        server.closeAllConnections()
      }),
  }
}

async function answer(sim: Sim, request: IncomingMessage): Promise<unknown> {
  const { pathname } = new URL(request.url ?? '/', 'http://127.0.0.1')
  const [, room = '', name = ''] = pathname.split('/').map(decodeURIComponent)
  const call = `${request.method} /${room}${name === '' ? '' : '/…'}`
  switch (call) {
    case 'GET /vms':
      return sim.vms()
    case 'GET /volumes':
      return sim.volumes()
    case 'GET /tasks':
      return sim.tasks()
    case 'GET /calls':
      return sim.calls()
    case 'GET /nodes':
      return sim.nodes()
    case 'GET /faults':
      return sim.faults.list()
    case 'POST /faults':
      return { id: addFault(sim, await body(request)) }
    case 'DELETE /faults':
      return sim.faults.clear()
    case 'DELETE /faults/…':
      if (!sim.faults.list().some((rule) => rule.id === name))
        throw new AdminError(404, `no such fault: ${name}`)
      return sim.faults.remove(name)
    case 'POST /nodes/…':
      return setNode(sim, name, await body(request))
    case 'POST /qm':
      return typed(sim, await body(request), ['qm'])
    case 'POST /root':
      return typed(sim, await body(request))
    default:
      throw new AdminError(404, `no such call: ${call}`)
  }
}

async function body(request: IncomingMessage): Promise<Record<string, unknown>> {
  const chunks: Buffer[] = []
  for await (const chunk of request) chunks.push(chunk)
  try {
    const parsed: unknown = JSON.parse(Buffer.concat(chunks).toString('utf8') || '{}')
    if (typeof parsed === 'object' && parsed !== null) return parsed as Record<string, unknown> // any object fits
  } catch (error) {
    throw new AdminError(400, `the body is not JSON: ${(error as Error).message}`) // JSON.parse throws Errors only
  }
  throw new AdminError(400, 'the body is no object')
}

function addFault(sim: Sim, rule: Record<string, unknown>): string {
  const { match = {}, effect } = rule
  if (typeof match !== 'object' || typeof effect !== 'object' || effect === null || !('kind' in effect))
    throw new AdminError(400, 'a fault has `match` and `effect` with its `kind`')
  return sim.faults.add({ ...rule, match, effect } as FaultRule) // the door of a test tool: what its kind leaves out is a mistake the engine shows
}

function setNode(sim: Sim, name: string, { state, reset }: Record<string, unknown>): unknown {
  if (!sim.nodes().some((node) => node.name === name)) throw new AdminError(404, `no such node: ${name}`)
  if (reset === true) sim.hostReset(name)
  else if (typeof state === 'string' && states.has(state))
    sim.setNode(name, state as NodeState) // just checked
  else throw new AdminError(400, `state is one of ${[...states].join(', ')}`)
  return sim.nodes()
}

async function typed(
  sim: Sim,
  { node, argv }: Record<string, unknown>,
  before: string[] = [],
): Promise<unknown> {
  const words = Array.isArray(argv) ? argv.map(String) : undefined
  if (typeof node !== 'string' || !words) throw new AdminError(400, 'a shell takes {node, argv}')
  if (!sim.nodes().some(({ name }) => name === node)) throw new AdminError(404, `no such node: ${node}`)
  return typeLine(sim, node, [...before, ...words])
}
