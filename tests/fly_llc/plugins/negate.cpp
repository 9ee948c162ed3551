// An IR pass for the tests: every float addition becomes a subtraction. That can be seen in a kernel's
// results.

#include "llvm/IR/Function.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/PassManager.h"
#include "llvm/Passes/PassBuilder.h"
#include "llvm/Plugins/PassPlugin.h"

using namespace llvm;

namespace {
struct Negate : PassInfoMixin<Negate> {
  PreservedAnalyses run(Function &F, FunctionAnalysisManager &) {
    SmallVector<Instruction *, 8> Found;
    for (Instruction &I : instructions(F))
      if (I.getOpcode() == Instruction::FAdd)
        Found.push_back(&I);
    for (Instruction *I : Found) {
      IRBuilder<> Builder(I);
      I->replaceAllUsesWith(
          Builder.CreateFSub(I->getOperand(0), I->getOperand(1)));
      I->eraseFromParent();
    }
    return Found.empty() ? PreservedAnalyses::all() : PreservedAnalyses::none();
  }
  static bool isRequired() { return true; }
};
} // namespace

extern "C" LLVM_ATTRIBUTE_WEAK PassPluginLibraryInfo llvmGetPassPluginInfo() {
  return {LLVM_PLUGIN_API_VERSION, "negate", "1", [](PassBuilder &PB) {
            PB.registerPipelineParsingCallback(
                [](StringRef Name, FunctionPassManager &FPM,
                   ArrayRef<PassBuilder::PipelineElement>) {
                  if (Name != "negate-additions")
                    return false;
                  FPM.addPass(Negate());
                  return true;
                });
          }};
}
