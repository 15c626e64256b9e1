#!/usr/bin/env node
// Plain JavaScript, so that any Node can read it: the rest is TypeScript, which Node runs as it is from 22.18 on. An older
// Node hands over to the Node 24 that npm installed beside us.
import { spawn } from 'node:child_process'
import { existsSync } from 'node:fs'
import module from 'node:module'
import { constants } from 'node:os'
import { fileURLToPath } from 'node:url'

const [major = 0, minor = 0] = process.versions.node.split('.').map(Number)

if (major >= 24 || (major === 22 && minor >= 19)) {
  // Handed over to: when whoever did so is killed, nobody is left to be served.
  if (process.channel) {
    process.on('disconnect', () => process.exit(1))
    process.channel.unref()
  }
  // Halves the time that loading the SDKs takes.
  module.enableCompileCache?.()
  const { main } = await import('./main.ts')
  process.exitCode = await main(process.argv.slice(2), process.env)
} else {
  handOver()
}

function handOver() {
  const binary = fileURLToPath(
    new URL(`../node_modules/node-${process.platform}-${process.arch}/bin/node`, import.meta.url),
  )
  if (!existsSync(binary)) {
    console.error(
      `egress needs Node.js 24 and this is ${process.version}. On Linux (x64, arm64), npm ci brings one along unless it was told ` +
        'to omit optional packages; elsewhere, install Node.js 24.',
    )
    process.exitCode = 2
    return
  }
  const args = [fileURLToPath(import.meta.url), ...process.argv.slice(2)]
  const child = spawn(binary, args, { stdio: ['inherit', 'inherit', 'inherit', 'ipc'] })
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.on(signal, () => child.kill(signal))
  child.on('exit', (code, signal) => process.exit(code ?? 128 + (signal ? constants.signals[signal] : 0)))
}
