// Machine passes for the tests: one puts two no-ops where each function begins, one does nothing.

#include "llvm/CodeGen/MachineFunctionPass.h"
#include "llvm/CodeGen/TargetInstrInfo.h"
#include "llvm/CodeGen/TargetSubtargetInfo.h"
#include "llvm/Pass.h"

using namespace llvm;

namespace {
struct Sled : MachineFunctionPass {
  static char ID;
  Sled() : MachineFunctionPass(ID) {}
  void getAnalysisUsage(AnalysisUsage &AU) const override {
    AU.setPreservesCFG();
    MachineFunctionPass::getAnalysisUsage(AU);
  }
  bool runOnMachineFunction(MachineFunction &MF) override {
    const TargetInstrInfo *TII = MF.getSubtarget().getInstrInfo();
    MachineBasicBlock &MBB = MF.front();
    TII->insertNoop(MBB, MBB.begin());
    TII->insertNoop(MBB, MBB.begin());
    return true;
  }
};
char Sled::ID = 0;
RegisterPass<Sled> X("test-sled", "two no-ops at the entry");

struct Nothing : MachineFunctionPass {
  static char ID;
  Nothing() : MachineFunctionPass(ID) {}
  void getAnalysisUsage(AnalysisUsage &AU) const override {
    AU.setPreservesAll();
    MachineFunctionPass::getAnalysisUsage(AU);
  }
  bool runOnMachineFunction(MachineFunction &) override { return false; }
};
char Nothing::ID = 0;
RegisterPass<Nothing> Y("test-nothing", "changes nothing");
} // namespace
