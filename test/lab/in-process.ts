import type { Exchange } from '../../lib/proxmox/index.ts'
import type { Sim } from '../../sim/index.ts'

/** The client's wire, led into the simulator without sockets, on its clock. */
export function inProcess(sim: Sim): Exchange {
  return async (endpoint, { method, path, headers, body, timeoutMs, signal }) => {
    const length =
      method === 'GET' || method === 'DELETE' ? {} : { 'content-length': String(body?.byteLength ?? 0) }
    const request = { method, path, headers: { host: new URL(endpoint.url).host, ...headers, ...length } }
    const fails = (code: string) => Object.assign(new Error(code.toLowerCase()), { code, sent: true })
    let calledOff = () => {}
    const cut = new Promise<never>((_, reject) => {
      calledOff = sim.clock.after(timeoutMs, () => reject(fails('TIMEOUT')))
      signal.addEventListener('abort', () => reject(fails('ABORTED')), { once: true })
    })
    cut.catch(() => {}) // Nobody listens any more when the answer came first.
    const answer = sim.request(endpoint.node ?? '', { ...request, ...(body ? { body } : {}) })
    answer.catch(() => {}) // … nor when it fails after our time-out.
    try {
      return await Promise.race([answer, cut])
    } finally {
      calledOff()
    }
  }
}
