// Inserts machine passes of plugins into llc's own pipeline: -fly-insert=ANCHOR=PASS runs PASS after
// each run of ANCHOR. llc calls RegisterTargetPassConfigCallback's functions when it sets the pipeline
// up; both passes are known to LLVM by their command-line names.

#include "llvm/CodeGen/TargetPassConfig.h"
#include "llvm/Pass.h"
#include "llvm/PassRegistry.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/ErrorHandling.h"
#include "llvm/Target/RegisterTargetPassConfigCallback.h"

using namespace llvm;

static cl::list<std::string> Insertions("fly-insert", cl::Hidden,
                                        cl::desc("ANCHOR=PASS"));

static AnalysisID find(StringRef Name) {
  const PassInfo *Info = PassRegistry::getPassRegistry()->getPassInfo(Name);
  if (!Info)
    report_fatal_error(Twine("no machine pass is registered as ") + Name,
                       /*gen_crash_diag=*/false);
  return Info->getTypeInfo();
}

static RegisterTargetPassConfigCallback
    Callback([](TargetMachine &, legacy::PassManagerBase &,
                TargetPassConfig *Config) {
      for (StringRef Text : Insertions) {
        auto [Anchor, Name] = Text.split('=');
        Config->insertPass(find(Anchor), find(Name));
      }
    });
