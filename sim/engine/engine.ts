import {
  type Engine,
  type EngineCall,
  type EngineResult,
  type SimCall,
  SimConnectionError,
} from '../types.ts'
import { authenticate } from './access.ts'
import { type Cluster, nodeOf, visibleFrom } from './cluster.ts'
import type { Ctx } from './endpoint.ts'
import { die, PveError } from './errors.ts'
import { joinParams, notImplemented, unescapePath } from './request-path.ts'
import { type Match, routesOf } from './routes.ts'
import { verify } from './verify.ts'

const proxyTimeoutMs = 30_000
const noRouteMs = 3000
const keptCalls = 5000

/** The API behind pveproxy: one call, judged in PVE's order, and carried out on the node it is for. */
export function createEngine(cluster: Cluster) {
  const routes = routesOf(cluster.state.version)
  const calls: SimCall[] = []

  const answer = async (call: EngineCall): Promise<EngineResult> => {
    try {
      const caller = authenticate(cluster.state, cluster.clock.now(), call.authorization, call.cookie)
      const { route, pathParams } = routes.find(call.method, unescapePath(call.path)) ?? notImplemented(call)
      const params = joinParams(call, pathParams)
      return await direct(
        { route, pathParams },
        { cluster, node: call.node, received: call.node, caller, params, call },
      )
    } catch (error) {
      if (!(error instanceof PveError)) throw error
      return refusal(error)
    }
  }

  const refusal = (error: PveError): EngineResult => {
    // The front makes such callers wait before it tells them.
    if (error.status === 401) return { status: 401, reason: error.message, emptyBody: true, close: true }
    const line = error.status === 501 ? error.message : `${error.message}\n`
    return { status: error.status, message: line, ...(error.errors ? { errors: error.errors } : {}) }
  }

  /** Permission, then the right node, then the right daemon. */
  const direct = async (match: Match, ctx: Ctx): Promise<EngineResult> => {
    const { schema } = match.route
    const wanted = match.pathParams.node
    const elsewhere =
      schema.proxiedToNode && wanted !== undefined && wanted !== 'localhost' && wanted !== ctx.received
    const here = elsewhere ? { ...ctx, node: wanted } : ctx
    match.route.endpoint.permission?.(here)
    if (!elsewhere) return onNode(match, ctx)
    if (!cluster.state.nodes.some((node) => node.name === wanted))
      die(
        `hostname lookup '${wanted}' failed - failed to get address info for: ${wanted}: Name or service not known`,
      )
    return (await unreachable(ctx.received, wanted)) ?? withinProxyTime(onNode(match, here))
  }

  /** How pveproxy of one node fails to reach that of another. */
  const unreachable = async (from: string, to: string): Promise<EngineResult | undefined> => {
    const target = nodeOf(cluster, to)
    if (!visibleFrom(cluster, from).includes(target)) {
      await cluster.clock.sleep(noRouteMs)
      return { status: 595, reason: 'No route to host', emptyBody: true }
    }
    if (target.state === 'down' || target.stopped.includes('pveproxy'))
      return { status: 595, reason: 'Connection refused', emptyBody: true }
    if (target.state !== 'hung') return undefined
    await cluster.clock.sleep(proxyTimeoutMs)
    return { status: 596, reason: 'Connection timed out', emptyBody: true }
  }

  const onNode = async (match: Match, ctx: Ctx): Promise<EngineResult> => {
    if (!match.route.schema.protected) return carryOut(match, ctx)
    if (nodeOf(cluster, ctx.node).stopped.includes('pvedaemon'))
      return { status: 595, reason: 'Connection refused', emptyBody: true }
    return withinProxyTime(cluster.workers.run(ctx.node, () => carryOut(match, ctx)))
  }

  /** pveproxy gives up after 30 s without a byte. The call itself goes on. */
  const withinProxyTime = (result: Promise<EngineResult>): Promise<EngineResult> =>
    new Promise((resolve, reject) => {
      const callOff = cluster.clock.after(proxyTimeoutMs, () =>
        resolve({ status: 596, reason: 'Connection timed out', emptyBody: true }),
      )
      result.then(resolve, reject).finally(callOff)
    })

  const carryOut = async (match: Match, ctx: Ctx): Promise<EngineResult> => {
    try {
      cluster.catchUp()
      verify(match.route.schema, ctx.params)
      const { data, total } = await match.route.endpoint.handler(ctx)
      return { status: 200, data, ...(total === undefined ? {} : { total }) }
    } catch (error) {
      if (!(error instanceof PveError)) throw error
      return refusal(error)
    } finally {
      if (ctx.call.method !== 'GET') cluster.commit()
    }
  }

  /** A node that cannot be asked at all. */
  const reach = async (name: string): Promise<void> => {
    const state = reachability(name)
    if (state === 'down') throw new SimConnectionError('ECONNREFUSED', false)
    if (state === 'unreachable') {
      await cluster.clock.sleep(noRouteMs)
      throw new SimConnectionError('EHOSTUNREACH', false)
    }
    if (state === 'hung') await new Promise(() => {})
  }

  const reachability: Engine['reachability'] = (name) => {
    const node = nodeOf(cluster, name)
    if (node.state === 'down' || node.stopped.includes('pveproxy')) return 'down'
    return node.state === 'unreachable' || node.state === 'hung' ? node.state : 'up'
  }

  const later = (ms: number, call: EngineCall): void => {
    cluster.clock.after(ms, () => {
      if (!cluster.closed()) void answer(call)
    })
  }

  const withFaults = async (call: EngineCall, entry: SimCall): Promise<EngineResult> => {
    await reach(call.node)
    const rule = cluster.faults.forCall(call)
    if (!rule) return answer(call)
    entry.fault = rule.id ?? ''
    const { effect } = rule
    if (effect.kind === 'delay') {
      await cluster.clock.sleep(effect.ms)
      return answer(call)
    }
    if (effect.kind === 'hang') {
      if (effect.run) later(0, call)
      return new Promise(() => {})
    }
    if (effect.kind !== 'answer' && effect.kind !== 'connection') return answer(call)
    if (effect.runAfterMs !== undefined) later((effect.afterMs ?? 0) + effect.runAfterMs, call)
    if (effect.afterMs) await cluster.clock.sleep(effect.afterMs)
    if (effect.kind === 'connection') throw new SimConnectionError(effect.code, effect.sent)
    return scripted(effect.answer)
  }

  const engine: Engine = {
    version: cluster.state.version,
    clock: cluster.clock,
    nodes: () => cluster.state.nodes.map((node) => node.name),
    reachability,
    onReachability: (listener) => cluster.onReachability(listener),

    async call(call) {
      const entry: SimCall = {
        atMs: cluster.clock.now(),
        node: call.node,
        method: call.method,
        path: call.path,
      }
      calls.push(entry)
      if (calls.length > keptCalls) calls.shift()
      try {
        const result = await withFaults(call, entry)
        Object.assign(entry, { status: result.status, tookMs: cluster.clock.now() - entry.atMs })
        return result
      } catch (error) {
        if (error instanceof SimConnectionError) entry.connection = error.code
        throw error
      }
    },

    async precheckUpload(call) {
      try {
        const caller = authenticate(cluster.state, cluster.clock.now(), call.authorization, call.cookie)
        const match = routes.find(call.method, unescapePath(call.path)) ?? notImplemented(call)
        const params = joinParams(call, match.pathParams)
        match.route.endpoint.permission?.({
          cluster,
          node: call.node,
          received: call.node,
          caller,
          params,
          call,
        })
        return undefined
      } catch (error) {
        if (!(error instanceof PveError)) throw error
        if (error.status !== 403) return refusal(error)
        return { status: 403, reason: error.message, emptyBody: true, close: true }
      }
    },
  }
  return { engine, calls, configOptions: routes.configOptions }
}

function scripted(answer: {
  status: number
  reason?: string
  message?: string
  errors?: Record<string, string>
  data?: unknown
}): EngineResult {
  const { status, reason, message, errors, data } = answer
  return {
    status,
    ...(reason === undefined ? {} : { reason }),
    ...(message === undefined ? {} : { message: message.endsWith('\n') ? message : `${message}\n` }),
    ...(errors === undefined ? {} : { errors }),
    ...(data === undefined ? {} : { data }),
    ...(status >= 595 ? { emptyBody: true } : {}),
  }
}
