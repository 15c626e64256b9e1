import requestOf from 'undici/lib/api/api-request.js'
import buildConnector from 'undici/lib/core/connect.js'
import Agent from 'undici/lib/dispatcher/agent.js'

/**
 * The parts of undici that carry a request, each from its own module: the whole package takes half as much again of every
 * function's bundle and of its cold start, with caches, mocks, WebSockets and a fetch that nobody calls. Its version is
 * pinned; where an update moves a part, everything that talks to a cluster fails to load at once.
 */
export { Agent, buildConnector }

/** Sends a request by an agent. */
export const requestBy = (agent: Agent, options: Parameters<typeof requestOf>[0]) =>
  requestOf.call(agent, options)
