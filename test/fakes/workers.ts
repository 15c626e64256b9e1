import { definition as creation } from '../../functions/create/definition.ts'
import { cycle as createCycle } from '../../functions/create/steps.ts'
import { definition as deletion } from '../../functions/delete/definition.ts'
import { cycle as deleteCycle } from '../../functions/delete/steps.ts'
import { assemble, type Connect, type Surroundings } from '../../lib/function.ts'
import type { LifeCycle } from '../../lib/life-cycle.ts'
import type { Provider } from '../../lib/proxmox/index.ts'
import type { Side } from '../../lib/record.ts'
import type { Worker } from '../../lib/worker.ts'

/** What stands behind both queues, without Lambda around it. */
export function workersOf(surroundings: Surroundings, cycles: Record<Side, LifeCycle>): Record<Side, Worker> {
  return {
    create: assemble(creation, cycles.create, surroundings),
    delete: assemble(deletion, cycles.delete, surroundings),
  }
}

/** The life cycles of this product, over clusters reached in this way. */
export const cyclesOf = (surroundings: Surroundings, connect: Connect<Provider>) => ({
  create: createCycle(surroundings, connect),
  delete: deleteCycle(surroundings, connect),
})
