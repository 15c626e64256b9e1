import { diag, SpanKind, SpanStatusCode, trace } from '@opentelemetry/api'
import type { CallLog, Endpoint } from './options.ts'
import { type Call, nameOf } from './request.ts'

type End = (outcome: Pick<CallLog, 'status' | 'code' | 'upid'>) => void

/**
 * The span of a call, where an SDK of OpenTelemetry is in the process. It is named by the path's template, with node and VMID
 * beside it: no other value of path, query or form is in it, and of an error its code alone.
 */
export function beginSpan(call: Call<unknown>, { url }: Endpoint): End {
  const { node, vmid } = call.path ?? {}
  const { hostname, port } = new URL(url)
  const attributes = {
    'http.request.method': call.spec.method,
    'url.template': `/api2/json${call.spec.path}`,
    'server.address': hostname,
    'server.port': Number(port) || 443,
    ...(node === undefined ? {} : { 'proxmox.node': node }),
    ...(vmid === undefined ? {} : { 'proxmox.vmid': vmid }),
  }
  const span = quietly(() =>
    trace.getTracer('egress-proxies').startSpan(nameOf(call), { kind: SpanKind.CLIENT, attributes }),
  )
  return ({ status, code, upid }) =>
    quietly(() => {
      if (status !== undefined) span?.setAttribute('http.response.status_code', status)
      if (upid !== undefined) span?.setAttribute('proxmox.upid', upid)
      if (code !== undefined) {
        span?.setAttribute('error.type', code)
        span?.setStatus({ code: SpanStatusCode.ERROR, message: code })
      }
      span?.end()
    })
}

/** An SDK that throws is its own affair, and fails no call. */
function quietly<T>(work: () => T): T | undefined {
  try {
    return work()
  } catch (error) {
    diag.error('a span was lost', error)
    return undefined
  }
}
