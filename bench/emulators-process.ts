import { startEmulators } from '../local/emulators.ts'
import { openPorts } from '../local/ports.ts'
import { usageNow } from './usage.ts'

// The emulators in a process of their own, so that their work is not taken for the functions'.
const [folder] = process.argv.slice(2)
if (folder === undefined || !process.send) throw new Error('to be forked with a folder')
const { close, ...where } = await startEmulators({
  folder,
  ports: openPorts(folder),
  functionTimeoutSeconds: 60,
})
const say = process.send.bind(process)
process.on('message', async (word) => {
  if (word === 'usage') {
    say(usageNow())
    return
  }
  await close()
  process.exit(0)
})
say(where)
