/**
 * What of the surrounding shell the functions are given as well: how an SDK of OpenTelemetry gets into their threads, and what
 * it is told. A thread that is given an environment of its own reads NODE_OPTIONS from that, and from nowhere else.
 */
export function telemetry(env: Readonly<Record<string, string | undefined>>): Record<string, string> {
  return Object.fromEntries(
    Object.entries(env).flatMap(([name, value]) =>
      value && (name === 'NODE_OPTIONS' || name.startsWith('OTEL_')) ? [[name, value]] : [],
    ),
  )
}
