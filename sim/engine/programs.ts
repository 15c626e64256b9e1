import { haStartProgram, haStopProgram } from './ha.ts'
import { uploadProgram } from './upload.ts'
import { cloneProgram } from './vm-clone.ts'
import { configProgram } from './vm-config.ts'
import { destroyProgram } from './vm-destroy.ts'
import { shutdownProgram, startProgram, stopProgram } from './vm-power.ts'
import { resizeProgram } from './vm-resize.ts'
import { deleteProgram } from './volume-delete.ts'

/** What each type of task does. */
export const programs = {
  hashutdown: haStopProgram,
  hastart: haStartProgram,
  hastop: haStopProgram,
  imgcopy: uploadProgram,
  imgdel: deleteProgram,
  qmclone: cloneProgram,
  qmconfig: configProgram,
  qmdestroy: destroyProgram,
  qmshutdown: shutdownProgram,
  qmstart: startProgram,
  qmstop: stopProgram,
  resize: resizeProgram,
}
