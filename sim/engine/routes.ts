import { accessEndpoints } from './api-access.ts'
import { agentEndpoints } from './api-agent.ts'
import { clusterEndpoints } from './api-cluster.ts'
import { storageEndpoints } from './api-storages.ts'
import { taskEndpoints } from './api-tasks.ts'
import { tokenEndpoints } from './api-tokens.ts'
import { vmEndpoints } from './api-vms.ts'
import type { Endpoint } from './endpoint.ts'
import { type EndpointSchema, endpointSchemas } from './schema.ts'
import { cloneEndpoint } from './vm-clone.ts'
import { configEndpoints } from './vm-config.ts'
import { destroyEndpoint } from './vm-destroy.ts'
import { powerEndpoints } from './vm-power.ts'
import { resizeEndpoint } from './vm-resize.ts'

const endpoints: Endpoint[] = [
  ...clusterEndpoints,
  ...accessEndpoints,
  ...tokenEndpoints,
  ...storageEndpoints,
  ...taskEndpoints,
  ...vmEndpoints,
  ...agentEndpoints,
  cloneEndpoint,
  ...configEndpoints,
  ...powerEndpoints,
  resizeEndpoint,
  destroyEndpoint,
]

type Route = { endpoint: Endpoint; schema: EndpointSchema; parts: string[] }
export type Match = { route: Route; pathParams: Record<string, string> }
type Routes = { find(method: string, path: string): Match | undefined; configOptions: Set<string> }

/** Of each version once: they do not change, and simulators come by the thousand. */
const known = new Map<8 | 9, Routes>()

/** The endpoints with the parameters they have in that version. */
export function routesOf(version: 8 | 9): Routes {
  const routes = known.get(version) ?? createRoutes(version)
  known.set(version, routes)
  return routes
}

function createRoutes(version: 8 | 9): Routes {
  const schemas = endpointSchemas(version)
  const routes = endpoints.map((endpoint): Route => {
    const schema = schemas.get(`${endpoint.method} ${endpoint.path}`) ?? ownSchema(endpoint)
    return { endpoint, schema, parts: split(endpoint.path) }
  })
  const config = schemas.get('PUT /nodes/{node}/qemu/{vmid}/config')
  return {
    configOptions: new Set(Object.keys(config?.parameters ?? {})),
    find(method, path) {
      const parts = split(path)
      for (const route of routes) {
        if (route.endpoint.method !== method) continue
        const pathParams = match(route.parts, parts)
        if (pathParams) return { route, pathParams }
      }
      return undefined
    },
  }
}

function ownSchema(endpoint: Endpoint): EndpointSchema {
  if (!endpoint.parameters) throw new Error(`no parameters known for ${endpoint.method} ${endpoint.path}`)
  return {
    method: endpoint.method,
    path: endpoint.path,
    protected: endpoint.protected ?? false,
    proxiedToNode: endpoint.proxied ?? false,
    parameters: endpoint.parameters,
  }
}

export const split = (path: string): string[] => path.split('/').filter((part) => part !== '')

function match(pattern: string[], parts: string[]): Record<string, string> | undefined {
  const params: Record<string, string> = {}
  for (const [index, piece] of pattern.entries()) {
    const part = parts[index]
    if (part === undefined) return undefined
    const name = /^\{(.+)\}$/.exec(piece)?.[1]
    // The volume takes the rest of the path, its slashes included.
    if (name === 'volume') return { ...params, volume: parts.slice(index).join('/') }
    if (name !== undefined) params[name] = part
    else if (piece !== part) return undefined
  }
  return parts.length === pattern.length ? params : undefined
}
