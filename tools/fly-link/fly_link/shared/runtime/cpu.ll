; Made by scripts/library-runtime. sha256 of the sources:
; 43a73d5ad2f8577b8f918989ad60be0fb66cb2eea75ad1310ddfe196af3dbfae

%struct.Lock = type { [64 x i8] }
%struct.Site = type { ptr, ptr, i32, i32 }
%struct.Target = type { ptr, ptr, i32, i32, i32, i32, i32, i32, ptr, ptr }
%struct.Variable = type { ptr, i32 }
%struct.timespec = type { i64, i64 }

@.str = private unnamed_addr constant [69 x i8] c"the device cpu needs an x86-64-v3 processor, with AVX2, FMA and F16C\00", align 1
@fly_variable_count = external local_unnamed_addr constant i32, align 4
@running = internal global %struct.Lock zeroinitializer, align 16
@.str.1 = private unnamed_addr constant [32 x i8] c"there is no memory for a launch\00", align 1
@.str.2 = private unnamed_addr constant [8 x i8] c"kernel \00", align 1
@.str.3 = private unnamed_addr constant [8 x i8] c" block \00", align 1
@fly_context = external global [0 x i64], align 8
@fly_sites = external local_unnamed_addr constant [0 x %struct.Site], align 8
@.str.4 = private unnamed_addr constant [2 x i8] c":\00", align 1
@.str.5 = private unnamed_addr constant [3 x i8] c": \00", align 1
@.str.6 = private unnamed_addr constant [10 x i8] c"; kernel \00", align 1
@.str.7 = private unnamed_addr constant [3 x i8] c" '\00", align 1
@.str.8 = private unnamed_addr constant [2 x i8] c"'\00", align 1
@.str.9 = private unnamed_addr constant [9 x i8] c" thread \00", align 1
@stdout = external local_unnamed_addr global ptr, align 8
@fly_targets = external local_unnamed_addr constant [0 x %struct.Target], align 8
@.str.10 = private unnamed_addr constant [38 x i8] c"there is no memory for the stacks of \00", align 1
@.str.11 = private unnamed_addr constant [9 x i8] c" threads\00", align 1
@.str.12 = private unnamed_addr constant [61 x i8] c"more buffers are bound at once than the device cpu can check\00", align 1
@fly_entries = external local_unnamed_addr constant [0 x ptr], align 8
@fly_cpu_numbers = external local_unnamed_addr constant [0 x i32], align 4
@stacks = internal unnamed_addr global ptr null, align 8
@launches = internal unnamed_addr global i64 0, align 8
@stacks_size = internal unnamed_addr global i64 0, align 8
@.str.13 = private unnamed_addr constant [23 x i8] c"the kernel's arguments\00", align 1
@.str.14 = private unnamed_addr constant [13 x i8] c"local memory\00", align 1
@fly_variable_names = external local_unnamed_addr constant [0 x %struct.Variable], align 8
@fly_variables = external local_unnamed_addr constant [0 x [2 x i64]], align 8
@fly_read = external global [0 x [2 x i64]], align 8
@fly_write = external global [0 x [2 x i64]], align 8
@__const.show.tables = private unnamed_addr constant [2 x ptr] [ptr @fly_read, ptr @fly_write], align 16
@rows = internal unnamed_addr global [2 x i64] zeroinitializer, align 16
@.str.15 = private unnamed_addr constant [12 x i8] c"FLY_TIMEOUT\00", align 1
@.str.16 = private unnamed_addr constant [40 x i8] c"timeout: the launch did not end within \00", align 1
@.str.17 = private unnamed_addr constant [5 x i8] c" s; \00", align 1
@.str.18 = private unnamed_addr constant [28 x i8] c"write to read-only memory: \00", align 1
@.str.19 = private unnamed_addr constant [4 x i8] c": `\00", align 1
@.str.20 = private unnamed_addr constant [19 x i8] c"` may only be read\00", align 1
@.str.21 = private unnamed_addr constant [15 x i8] c"memory fault: \00", align 1
@.str.22 = private unnamed_addr constant [20 x i8] c"misaligned access: \00", align 1
@.str.23 = private unnamed_addr constant [5 x i8] c"trap\00", align 1
@.str.24 = private unnamed_addr constant [58 x i8] c"divergent barrier: not all threads of the warp execute it\00", align 1
@.str.25 = private unnamed_addr constant [31 x i8] c"the thread is not in the mask \00", align 1
@.str.26 = private unnamed_addr constant [29 x i8] c" of an operation of its warp\00", align 1
@.str.27 = private unnamed_addr constant [9 x i8] c"barrier \00", align 1
@.str.28 = private unnamed_addr constant [6 x i8] c" for \00", align 1
@.str.29 = private unnamed_addr constant [24 x i8] c" threads does not exist\00", align 1
@.str.30 = private unnamed_addr constant [39 x i8] c"private memory fault: each thread has \00", align 1
@.str.31 = private unnamed_addr constant [16 x i8] c" bytes of stack\00", align 1
@.str.32 = private unnamed_addr constant [13 x i8] c"mbarrier at \00", align 1
@mbarriers.rel = internal unnamed_addr constant [4 x i32] [i32 trunc (i64 sub (i64 ptrtoint (ptr @.str.56 to i64), i64 ptrtoint (ptr @mbarriers.rel to i64)) to i32), i32 trunc (i64 sub (i64 ptrtoint (ptr @.str.57 to i64), i64 ptrtoint (ptr @mbarriers.rel to i64)) to i32), i32 trunc (i64 sub (i64 ptrtoint (ptr @.str.58 to i64), i64 ptrtoint (ptr @mbarriers.rel to i64)) to i32), i32 trunc (i64 sub (i64 ptrtoint (ptr @.str.59 to i64), i64 ptrtoint (ptr @mbarriers.rel to i64)) to i32)], align 4
@.str.33 = private unnamed_addr constant [27 x i8] c"there is no tensor map at \00", align 1
@clusters.rel = internal unnamed_addr constant [3 x i32] [i32 trunc (i64 sub (i64 ptrtoint (ptr @.str.60 to i64), i64 ptrtoint (ptr @clusters.rel to i64)) to i32), i32 trunc (i64 sub (i64 ptrtoint (ptr @.str.61 to i64), i64 ptrtoint (ptr @clusters.rel to i64)) to i32), i32 trunc (i64 sub (i64 ptrtoint (ptr @.str.62 to i64), i64 ptrtoint (ptr @clusters.rel to i64)) to i32)], align 4
@.str.34 = private unnamed_addr constant [19 x i8] c"assertion failed: \00", align 1
@.str.35 = private unnamed_addr constant [11 x i8] c" bytes at \00", align 1
@.str.36 = private unnamed_addr constant [38 x i8] c"a null pointer, or an offset from one\00", align 1
@.str.37 = private unnamed_addr constant [38 x i8] c"no buffer is near it; the nearest is \00", align 1
@.str.38 = private unnamed_addr constant [28 x i8] c" bytes before the start of \00", align 1
@.str.39 = private unnamed_addr constant [10 x i8] c"the last \00", align 1
@.str.40 = private unnamed_addr constant [35 x i8] c" of its bytes are past the end of \00", align 1
@.str.41 = private unnamed_addr constant [15 x i8] c"at the end of \00", align 1
@.str.42 = private unnamed_addr constant [24 x i8] c" bytes past the end of \00", align 1
@.str.43 = private unnamed_addr constant [2 x i8] c"`\00", align 1
@.str.44 = private unnamed_addr constant [4 x i8] c"` (\00", align 1
@.str.45 = private unnamed_addr constant [8 x i8] c" bytes)\00", align 1
@.str.46 = private unnamed_addr constant [5 x i8] c" at \00", align 1
@.str.47 = private unnamed_addr constant [47 x i8] c"deadlock: nothing can end the phase of parity \00", align 1
@.str.48 = private unnamed_addr constant [18 x i8] c" of this mbarrier\00", align 1
@.str.49 = private unnamed_addr constant [63 x i8] c"deadlock: not all threads of the cluster arrive at its barrier\00", align 1
@.str.50 = private unnamed_addr constant [56 x i8] c"not all threads of the warp group wait for its products\00", align 1
@.str.51 = private unnamed_addr constant [50 x i8] c"divergent barrier: not all threads reach barrier \00", align 1
@.str.52 = private unnamed_addr constant [3 x i8] c"; \00", align 1
@.str.53 = private unnamed_addr constant [20 x i8] c" threads have ended\00", align 1
@.str.54 = private unnamed_addr constant [27 x i8] c"not all lanes of the mask \00", align 1
@.str.55 = private unnamed_addr constant [21 x i8] c" reach the operation\00", align 1
@.str.56 = private unnamed_addr constant [22 x i8] c"it is not initialised\00", align 1
@.str.57 = private unnamed_addr constant [39 x i8] c"more arrivals than its phase waits for\00", align 1
@.str.58 = private unnamed_addr constant [66 x i8] c"more than 1 MB expected, or brought by copies that nobody expects\00", align 1
@.str.59 = private unnamed_addr constant [39 x i8] c"it must wait for 1 to 1048575 arrivals\00", align 1
@.str.60 = private unnamed_addr constant [75 x i8] c"the thread has arrived at the cluster's barrier before, and has not waited\00", align 1
@.str.61 = private unnamed_addr constant [69 x i8] c"the thread waits at the cluster's barrier, and has not arrived there\00", align 1
@.str.62 = private unnamed_addr constant [26 x i8] c"the cluster has no block \00", align 1
@.str.63 = private unnamed_addr constant [6 x i8] c"-+ #0\00", align 1
@.str.64 = private unnamed_addr constant [3 x i8] c"%d\00", align 1
@.str.65 = private unnamed_addr constant [6 x i8] c"hlzjt\00", align 1
@.str.66 = private unnamed_addr constant [19 x i8] c"diuoxXcsfFeEgGaAp%\00", align 1
@.str.67 = private unnamed_addr constant [7 x i8] c"diuoxX\00", align 1
@.str.70 = private unnamed_addr constant [7 x i8] c"(null)\00", align 1
@.str.71 = private unnamed_addr constant [7 x i8] c"0x%llx\00", align 1

define hidden range(i32 0, 5) i32 @fly_cpu_launch(ptr noundef readonly captures(none) %0, i32 noundef %1, ptr noundef readonly captures(none) %2, i32 noundef %3, ptr noundef readonly captures(none) %4, i64 noundef %5) local_unnamed_addr #0 {
  %7 = alloca i64, align 8
  %8 = tail call { i32, i32, i32, i32 } asm "  xchg$(q$|$)  $(%$|$)rbx,${1:q}\0A  cpuid\0A  xchg$(q$|$)  $(%$|$)rbx,${1:q}", "={ax},=r,={cx},={dx},0,~{dirflag},~{fpsr},~{flags}"(i32 0) #20, !srcloc !2
  %9 = extractvalue { i32, i32, i32, i32 } %8, 0
  %10 = icmp eq i32 %9, 0
  br i1 %10, label %32, label %11

11:                                               ; preds = %6
  %12 = tail call { i32, i32, i32, i32 } asm "  xchg$(q$|$)  $(%$|$)rbx,${1:q}\0A  cpuid\0A  xchg$(q$|$)  $(%$|$)rbx,${1:q}", "={ax},=r,={cx},={dx},0,~{dirflag},~{fpsr},~{flags}"(i32 1) #20, !srcloc !3
  %13 = extractvalue { i32, i32, i32, i32 } %12, 2
  %14 = and i32 %13, 943722496
  %15 = icmp ne i32 %14, 943722496
  %16 = icmp ult i32 %9, 7
  %17 = or i1 %16, %15
  br i1 %17, label %32, label %18

18:                                               ; preds = %11
  %19 = tail call { i32, i32, i32, i32 } asm "  xchg$(q$|$)  $(%$|$)rbx,${1:q}\0A  cpuid\0A  xchg$(q$|$)  $(%$|$)rbx,${1:q}", "={ax},=r,={cx},={dx},0,2,~{dirflag},~{fpsr},~{flags}"(i32 7, i32 0) #20, !srcloc !4
  %20 = extractvalue { i32, i32, i32, i32 } %19, 1
  %21 = and i32 %20, 296
  %22 = icmp eq i32 %21, 296
  br i1 %22, label %23, label %32

23:                                               ; preds = %18
  %24 = tail call { i32, i32, i32, i32 } asm "  xchg$(q$|$)  $(%$|$)rbx,${1:q}\0A  cpuid\0A  xchg$(q$|$)  $(%$|$)rbx,${1:q}", "={ax},=r,={cx},={dx},0,~{dirflag},~{fpsr},~{flags}"(i32 range(i32 0, -2147483647) -2147483648) #20, !srcloc !2
  %25 = extractvalue { i32, i32, i32, i32 } %24, 0
  %26 = icmp ugt i32 %25, -2147483648
  br i1 %26, label %27, label %32

27:                                               ; preds = %23
  %28 = tail call { i32, i32, i32, i32 } asm "  xchg$(q$|$)  $(%$|$)rbx,${1:q}\0A  cpuid\0A  xchg$(q$|$)  $(%$|$)rbx,${1:q}", "={ax},=r,={cx},={dx},0,~{dirflag},~{fpsr},~{flags}"(i32 -2147483647) #20, !srcloc !3
  %29 = extractvalue { i32, i32, i32, i32 } %28, 2
  %30 = and i32 %29, 32
  %31 = icmp eq i32 %30, 0
  br i1 %31, label %32, label %33

32:                                               ; preds = %18, %11, %6, %23, %27
  tail call void @fly_say(ptr noundef nonnull @.str) #21
  br label %244

33:                                               ; preds = %27
  %34 = and i64 %5, -64
  %35 = add i64 %34, 64
  %36 = tail call noalias align 64 ptr @aligned_alloc(i64 noundef 64, i64 noundef %35) #22
  %37 = load i32, ptr @fly_variable_count, align 4
  %38 = sext i32 %37 to i64
  %39 = add nsw i64 %38, 2
  %40 = tail call noalias ptr @calloc(i64 noundef %39, i64 noundef 40) #23
  %41 = icmp ne ptr %36, null
  %42 = icmp ne ptr %40, null
  %43 = and i1 %41, %42
  br i1 %43, label %44, label %241

44:                                               ; preds = %33
  tail call void @llvm.memcpy.p0.p0.i64(ptr nonnull align 64 %36, ptr align 1 %4, i64 %5, i1 false)
  %45 = tail call i32 @pthread_mutex_lock(ptr noundef nonnull @running) #21
  %46 = getelementptr inbounds nuw i8, ptr %0, i64 20
  %47 = load i32, ptr %46, align 4
  %48 = sext i32 %47 to i64
  %49 = getelementptr inbounds %struct.Target, ptr @fly_targets, i64 %48
  %50 = getelementptr inbounds nuw i8, ptr %49, i64 48
  %51 = load ptr, ptr %50, align 8
  %52 = sext i32 %1 to i64
  %53 = getelementptr inbounds ptr, ptr %51, i64 %52
  %54 = load ptr, ptr %53, align 8
  %55 = getelementptr inbounds nuw i8, ptr %2, i64 12
  %56 = load i32, ptr %55, align 4
  %57 = zext i32 %56 to i64
  %58 = getelementptr inbounds nuw i8, ptr %2, i64 16
  %59 = load i32, ptr %58, align 4
  %60 = zext i32 %59 to i64
  %61 = mul nuw nsw i64 %60, %57
  %62 = getelementptr inbounds nuw i8, ptr %2, i64 20
  %63 = load i32, ptr %62, align 4
  %64 = zext i32 %63 to i64
  %65 = mul nuw nsw i64 %61, %64
  call void @llvm.lifetime.start.p0(ptr nonnull %7) #24
  store i64 0, ptr %7, align 8
  %66 = shl i64 %65, 18
  %67 = load i64, ptr @stacks_size, align 8
  %68 = icmp ugt i64 %66, %67
  br i1 %68, label %71, label %69

69:                                               ; preds = %44
  %70 = load ptr, ptr @stacks, align 8
  br label %82

71:                                               ; preds = %44
  %72 = tail call ptr @mmap(ptr noundef null, i64 noundef %66, i32 noundef 3, i32 noundef 16418, i32 noundef -1, i64 noundef 0) #21
  %73 = icmp eq ptr %72, inttoptr (i64 -1 to ptr)
  br i1 %73, label %81, label %74

74:                                               ; preds = %71
  %75 = load ptr, ptr @stacks, align 8
  %76 = icmp eq ptr %75, null
  br i1 %76, label %80, label %77

77:                                               ; preds = %74
  %78 = load i64, ptr @stacks_size, align 8
  %79 = tail call i32 @munmap(ptr noundef nonnull %75, i64 noundef %78) #21
  br label %80

80:                                               ; preds = %77, %74
  store ptr %72, ptr @stacks, align 8
  store i64 %66, ptr @stacks_size, align 8
  br label %82

81:                                               ; preds = %71
  tail call void @fly_say(ptr noundef nonnull @.str.10) #21
  tail call void @fly_say_number(i64 noundef %65) #21
  tail call void @fly_say(ptr noundef nonnull @.str.11) #21
  br label %238

82:                                               ; preds = %80, %69
  %83 = phi i64 [ %67, %69 ], [ %66, %80 ]
  %84 = phi ptr [ %70, %69 ], [ %72, %80 ]
  %85 = getelementptr inbounds nuw i8, ptr %0, i64 40
  %86 = load ptr, ptr %85, align 8
  %87 = zext i32 %3 to i64
  %88 = ptrtoint ptr %36 to i64
  store ptr %86, ptr %40, align 8
  %89 = getelementptr inbounds nuw i8, ptr %40, i64 8
  store ptr @.str.13, ptr %89, align 8
  %90 = getelementptr inbounds nuw i8, ptr %40, i64 16
  store i64 %88, ptr %90, align 8
  %91 = getelementptr inbounds nuw i8, ptr %40, i64 24
  store i64 %5, ptr %91, align 8
  %92 = getelementptr inbounds nuw i8, ptr %40, i64 40
  %93 = ptrtoint ptr %84 to i64
  store ptr %40, ptr %92, align 8
  %94 = getelementptr inbounds nuw i8, ptr %40, i64 48
  store ptr @.str.14, ptr %94, align 8
  %95 = getelementptr inbounds nuw i8, ptr %40, i64 56
  store i64 %93, ptr %95, align 8
  %96 = getelementptr inbounds nuw i8, ptr %40, i64 64
  store i64 %83, ptr %96, align 8
  %97 = getelementptr inbounds nuw i8, ptr %40, i64 72
  store i32 1, ptr %97, align 8
  %98 = getelementptr inbounds nuw i8, ptr %40, i64 80
  %99 = tail call i32 @llvm.smax.i32(i32 %37, i32 0)
  %100 = zext nneg i32 %99 to i64
  br label %101

101:                                              ; preds = %116, %82
  %102 = phi i64 [ %130, %116 ], [ 0, %82 ]
  %103 = phi ptr [ %129, %116 ], [ %98, %82 ]
  %104 = phi ptr [ %103, %116 ], [ %92, %82 ]
  %105 = icmp eq i64 %102, %100
  br i1 %105, label %131, label %106

106:                                              ; preds = %101
  %107 = getelementptr inbounds nuw %struct.Variable, ptr @fly_variable_names, i64 %102
  %108 = getelementptr inbounds nuw i8, ptr %107, i64 8
  %109 = load i32, ptr %108, align 8
  %110 = and i32 %109, 1
  %111 = icmp eq i32 %110, 0
  br i1 %111, label %112, label %116

112:                                              ; preds = %106
  %113 = getelementptr inbounds nuw [2 x i64], ptr @fly_variables, i64 %102
  %114 = getelementptr inbounds nuw i8, ptr %113, i64 8
  %115 = load i64, ptr %114, align 8
  br label %116

116:                                              ; preds = %112, %106
  %117 = phi i64 [ %115, %112 ], [ %87, %106 ]
  %118 = load ptr, ptr %107, align 8
  %119 = getelementptr inbounds nuw [2 x i64], ptr @fly_variables, i64 %102
  %120 = load i64, ptr %119, align 8
  %121 = lshr i32 %109, 1
  %122 = and i32 %121, 1
  %123 = xor i32 %122, 1
  store ptr %104, ptr %103, align 8
  %124 = getelementptr inbounds nuw i8, ptr %103, i64 8
  store ptr %118, ptr %124, align 8
  %125 = getelementptr inbounds nuw i8, ptr %103, i64 16
  store i64 %120, ptr %125, align 8
  %126 = getelementptr inbounds nuw i8, ptr %103, i64 24
  store i64 %117, ptr %126, align 8
  %127 = getelementptr inbounds nuw i8, ptr %103, i64 32
  store i32 %123, ptr %127, align 8
  %128 = getelementptr inbounds nuw i8, ptr %103, i64 36
  store i32 0, ptr %128, align 4
  %129 = getelementptr inbounds nuw i8, ptr %103, i64 40
  %130 = add nuw nsw i64 %102, 1
  br label %101, !llvm.loop !5

131:                                              ; preds = %101, %168
  %132 = phi i64 [ %171, %168 ], [ 0, %101 ]
  %133 = icmp eq i64 %132, 2
  br i1 %133, label %177, label %134

134:                                              ; preds = %131
  %135 = icmp eq i64 %132, 0
  %136 = getelementptr inbounds nuw ptr, ptr @__const.show.tables, i64 %132
  br label %137

137:                                              ; preds = %162, %134
  %138 = phi i64 [ %163, %162 ], [ 0, %134 ]
  %139 = phi ptr [ %164, %162 ], [ %104, %134 ]
  %140 = icmp eq ptr %139, null
  br i1 %140, label %141, label %144

141:                                              ; preds = %137
  %142 = getelementptr inbounds nuw i64, ptr @rows, i64 %132
  %143 = load i64, ptr %142, align 8
  br label %165

144:                                              ; preds = %137
  br i1 %135, label %151, label %145

145:                                              ; preds = %144
  %146 = getelementptr inbounds nuw i8, ptr %139, i64 32
  %147 = load i32, ptr %146, align 8
  %148 = icmp eq i32 %147, 0
  br i1 %148, label %162, label %149

149:                                              ; preds = %145
  %150 = icmp eq i64 %138, 2048
  br i1 %150, label %176, label %153

151:                                              ; preds = %144
  %152 = icmp eq i64 %138, 2048
  br i1 %152, label %176, label %153

153:                                              ; preds = %151, %149
  %154 = getelementptr inbounds nuw i8, ptr %139, i64 16
  %155 = load i64, ptr %154, align 8
  %156 = load ptr, ptr %136, align 8
  %157 = getelementptr inbounds [2 x i64], ptr %156, i64 %138
  store i64 %155, ptr %157, align 8
  %158 = getelementptr inbounds nuw i8, ptr %139, i64 24
  %159 = load i64, ptr %158, align 8
  %160 = add nsw i64 %138, 1
  %161 = getelementptr inbounds nuw i8, ptr %157, i64 8
  store i64 %159, ptr %161, align 8
  br label %162

162:                                              ; preds = %153, %145
  %163 = phi i64 [ %160, %153 ], [ %138, %145 ]
  %164 = load ptr, ptr %139, align 8
  br label %137, !llvm.loop !7

165:                                              ; preds = %172, %141
  %166 = phi i64 [ %175, %172 ], [ %138, %141 ]
  %167 = icmp slt i64 %166, %143
  br i1 %167, label %172, label %168

168:                                              ; preds = %165
  store i64 %138, ptr %142, align 8
  %169 = select i1 %135, i64 13, i64 14
  %170 = getelementptr inbounds nuw i64, ptr @fly_context, i64 %169
  store i64 %138, ptr %170, align 8
  %171 = add nuw nsw i64 %132, 1
  br label %131, !llvm.loop !8

172:                                              ; preds = %165
  %173 = load ptr, ptr %136, align 8
  %174 = getelementptr inbounds [2 x i64], ptr %173, i64 %166
  %175 = add nsw i64 %166, 1
  tail call void @llvm.memset.p0.i64(ptr noundef nonnull align 8 dereferenceable(16) %174, i8 0, i64 16, i1 false)
  br label %165, !llvm.loop !9

176:                                              ; preds = %151, %149
  tail call void @fly_say(ptr noundef nonnull @.str.12) #21
  br label %238

177:                                              ; preds = %131
  %178 = getelementptr inbounds i32, ptr @fly_cpu_numbers, i64 %52
  %179 = load i32, ptr %178, align 4
  %180 = sext i32 %179 to i64
  %181 = getelementptr inbounds ptr, ptr @fly_entries, i64 %180
  %182 = load ptr, ptr %181, align 8
  %183 = ptrtoint ptr %182 to i64
  store i64 %183, ptr @fly_context, align 8
  store i64 %88, ptr getelementptr inbounds nuw (i8, ptr @fly_context, i64 8), align 8
  br label %184

184:                                              ; preds = %231, %177
  %185 = phi i64 [ %237, %231 ], [ 0, %177 ]
  %186 = icmp eq i64 %185, 6
  br i1 %186, label %187, label %231

187:                                              ; preds = %184
  store i64 %65, ptr getelementptr inbounds nuw (i8, ptr @fly_context, i64 64), align 8
  %188 = ptrtoint ptr %7 to i64
  store i64 %188, ptr getelementptr inbounds nuw (i8, ptr @fly_context, i64 72), align 8
  %189 = load i32, ptr %2, align 4
  %190 = zext i32 %189 to i64
  %191 = getelementptr inbounds nuw i8, ptr %2, i64 4
  %192 = load i32, ptr %191, align 4
  %193 = zext i32 %192 to i64
  %194 = mul nuw nsw i64 %193, %190
  %195 = getelementptr inbounds nuw i8, ptr %2, i64 8
  %196 = load i32, ptr %195, align 4
  %197 = zext i32 %196 to i64
  %198 = mul nuw nsw i64 %194, %197
  store i64 %198, ptr getelementptr inbounds nuw (i8, ptr @fly_context, i64 80), align 8
  store i64 %93, ptr getelementptr inbounds nuw (i8, ptr @fly_context, i64 88), align 8
  store i64 %87, ptr getelementptr inbounds nuw (i8, ptr @fly_context, i64 96), align 8
  store i64 4096, ptr getelementptr inbounds nuw (i8, ptr @fly_context, i64 120), align 8
  %199 = load i64, ptr @launches, align 8
  %200 = add nsw i64 %199, 1
  store i64 %200, ptr @launches, align 8
  store i64 %200, ptr getelementptr inbounds nuw (i8, ptr @fly_context, i64 128), align 8
  %201 = call ptr @getenv(ptr noundef nonnull @.str.15) #21
  %202 = icmp eq ptr %201, null
  br i1 %202, label %205, label %203

203:                                              ; preds = %187
  %204 = call double @strtod(ptr noundef nonnull captures(none) %201, ptr noundef null) #21
  br label %205

205:                                              ; preds = %203, %187
  %206 = phi double [ %204, %203 ], [ 0.000000e+00, %187 ]
  %207 = call fastcc double @now() #25
  %208 = fcmp ogt double %206, 0.000000e+00
  %209 = select i1 %208, double %206, double 3.000000e+02
  br label %210

210:                                              ; preds = %223, %205
  %211 = phi i64 [ 1, %205 ], [ 0, %223 ]
  %212 = call i64 @fly_run(i64 noundef %211) #21
  switch i64 %212, label %219 [
    i64 0, label %238
    i64 2, label %213
    i64 3, label %214
  ]

213:                                              ; preds = %210
  call void @fly_say_fault(ptr noundef nonnull readonly %104, ptr noundef %54) #25
  br label %238

214:                                              ; preds = %210
  %215 = load i64, ptr getelementptr inbounds nuw (i8, ptr @fly_context, i64 232), align 8
  %216 = inttoptr i64 %215 to ptr
  %217 = load i64, ptr getelementptr inbounds nuw (i8, ptr @fly_context, i64 240), align 8
  %218 = inttoptr i64 %217 to ptr
  call void @fly_print(ptr noundef %216, ptr noundef %218) #25
  br label %223

219:                                              ; preds = %210
  store i64 4096, ptr getelementptr inbounds nuw (i8, ptr @fly_context, i64 120), align 8
  %220 = call fastcc double @now() #25
  %221 = fsub double %220, %207
  %222 = fcmp ogt double %221, %209
  br i1 %222, label %224, label %223

223:                                              ; preds = %219, %214
  br label %210, !llvm.loop !10

224:                                              ; preds = %219
  call void @fly_say(ptr noundef nonnull @.str.16) #21
  %225 = fptosi double %209 to i64
  %226 = sitofp i64 %225 to double
  %227 = fcmp oeq double %209, %226
  br i1 %227, label %228, label %229

228:                                              ; preds = %224
  call void @fly_say_number(i64 noundef %225) #21
  br label %230

229:                                              ; preds = %224
  call void @fly_say_float(double noundef %209) #21
  br label %230

230:                                              ; preds = %229, %228
  call void @fly_say(ptr noundef nonnull @.str.17) #21
  call void @fly_say_block(ptr noundef %54) #25
  br label %238

231:                                              ; preds = %184
  %232 = getelementptr inbounds nuw i32, ptr %2, i64 %185
  %233 = load i32, ptr %232, align 4
  %234 = zext i32 %233 to i64
  %235 = getelementptr inbounds nuw i64, ptr @fly_context, i64 %185
  %236 = getelementptr inbounds nuw i8, ptr %235, i64 16
  store i64 %234, ptr %236, align 8
  %237 = add nuw nsw i64 %185, 1
  br label %184, !llvm.loop !11

238:                                              ; preds = %210, %81, %176, %213, %230
  %239 = phi i32 [ 3, %81 ], [ 1, %176 ], [ 4, %213 ], [ 4, %230 ], [ 0, %210 ]
  call void @llvm.lifetime.end.p0(ptr nonnull %7) #24
  %240 = call i32 @pthread_mutex_unlock(ptr noundef nonnull @running) #21
  br label %242

241:                                              ; preds = %33
  tail call void @fly_say(ptr noundef nonnull @.str.1) #21
  br label %242

242:                                              ; preds = %241, %238
  %243 = phi i32 [ %239, %238 ], [ 3, %241 ]
  call void @free(ptr noundef %40) #21
  call void @free(ptr noundef %36) #21
  br label %244

244:                                              ; preds = %242, %32
  %245 = phi i32 [ %243, %242 ], [ 3, %32 ]
  ret i32 %245
}

declare void @fly_say(ptr noundef) local_unnamed_addr #1

declare void @llvm.lifetime.start.p0(ptr captures(none)) #2

declare noalias noundef ptr @aligned_alloc(i64 allocalign noundef, i64 noundef) local_unnamed_addr #3

declare noalias noundef ptr @calloc(i64 noundef, i64 noundef) local_unnamed_addr #4

declare void @llvm.memcpy.p0.p0.i64(ptr noalias writeonly captures(none), ptr noalias readonly captures(none), i64, i1 immarg) #5

declare i32 @pthread_mutex_lock(ptr noundef) local_unnamed_addr #1

declare i32 @pthread_mutex_unlock(ptr noundef) local_unnamed_addr #1

declare void @free(ptr allocptr noundef captures(none)) local_unnamed_addr #6

declare void @llvm.lifetime.end.p0(ptr captures(none)) #2

define hidden void @fly_say_block(ptr noundef %0) local_unnamed_addr #0 {
  tail call void @fly_say(ptr noundef nonnull @.str.2) #21
  tail call void @fly_say(ptr noundef %0) #21
  tail call void @fly_say(ptr noundef nonnull @.str.3) #21
  tail call void @fly_say_array(ptr noundef nonnull getelementptr inbounds nuw (i8, ptr @fly_context, i64 192), i64 noundef 3) #21
  ret void
}

declare void @fly_say_array(ptr noundef, i64 noundef) local_unnamed_addr #1

define hidden void @fly_say_fault(ptr noundef readonly captures(address) %0, ptr noundef %1) local_unnamed_addr #0 {
  %3 = alloca [3 x i64], align 16
  %4 = load i64, ptr getelementptr inbounds nuw (i8, ptr @fly_context, i64 176), align 8
  %5 = getelementptr inbounds %struct.Site, ptr @fly_sites, i64 %4
  %6 = load i64, ptr getelementptr inbounds nuw (i8, ptr @fly_context, i64 184), align 8
  %7 = load i64, ptr getelementptr inbounds nuw (i8, ptr @fly_context, i64 40), align 8
  %8 = load i64, ptr getelementptr inbounds nuw (i8, ptr @fly_context, i64 48), align 8
  call void @llvm.lifetime.start.p0(ptr nonnull %3) #24
  %9 = srem i64 %6, %7
  store i64 %9, ptr %3, align 16
  %10 = getelementptr inbounds nuw i8, ptr %3, i64 8
  %11 = sdiv i64 %6, %7
  %12 = srem i64 %11, %8
  store i64 %12, ptr %10, align 8
  %13 = getelementptr inbounds nuw i8, ptr %3, i64 16
  %14 = mul nsw i64 %8, %7
  %15 = sdiv i64 %6, %14
  store i64 %15, ptr %13, align 16
  %16 = getelementptr inbounds nuw i8, ptr %5, i64 8
  %17 = load ptr, ptr %16, align 8
  %18 = icmp eq ptr %17, null
  br i1 %18, label %29, label %19

19:                                               ; preds = %2
  tail call void @fly_say(ptr noundef nonnull %17) #21
  tail call void @fly_say(ptr noundef nonnull @.str.4) #21
  %20 = getelementptr inbounds nuw i8, ptr %5, i64 16
  %21 = load i32, ptr %20, align 8
  %22 = sext i32 %21 to i64
  tail call void @fly_say_number(i64 noundef %22) #21
  %23 = getelementptr inbounds nuw i8, ptr %5, i64 20
  %24 = load i32, ptr %23, align 4
  %25 = icmp eq i32 %24, 0
  br i1 %25, label %28, label %26

26:                                               ; preds = %19
  tail call void @fly_say(ptr noundef nonnull @.str.4) #21
  %27 = sext i32 %24 to i64
  tail call void @fly_say_number(i64 noundef %27) #21
  br label %28

28:                                               ; preds = %26, %19
  tail call void @fly_say(ptr noundef nonnull @.str.5) #21
  br label %29

29:                                               ; preds = %28, %2
  %30 = load i64, ptr getelementptr inbounds nuw (i8, ptr @fly_context, i64 152), align 8
  %31 = load i64, ptr getelementptr inbounds nuw (i8, ptr @fly_context, i64 160), align 8
  %32 = load i64, ptr getelementptr inbounds nuw (i8, ptr @fly_context, i64 168), align 8
  switch i64 %30, label %131 [
    i64 1, label %33
    i64 0, label %52
    i64 2, label %98
    i64 3, label %99
    i64 4, label %100
    i64 5, label %101
    i64 6, label %119
    i64 7, label %120
    i64 8, label %121
    i64 10, label %122
    i64 11, label %125
    i64 12, label %126
  ]

33:                                               ; preds = %29
  %34 = add i64 %32, %31
  br label %35

35:                                               ; preds = %47, %33
  %36 = phi ptr [ %48, %47 ], [ %0, %33 ]
  %37 = icmp eq ptr %36, null
  br i1 %37, label %52, label %38

38:                                               ; preds = %35
  %39 = getelementptr inbounds nuw i8, ptr %36, i64 16
  %40 = load i64, ptr %39, align 8
  %41 = icmp ugt i64 %40, %31
  br i1 %41, label %47, label %42

42:                                               ; preds = %38
  %43 = getelementptr inbounds nuw i8, ptr %36, i64 24
  %44 = load i64, ptr %43, align 8
  %45 = add i64 %44, %40
  %46 = icmp ugt i64 %34, %45
  br i1 %46, label %47, label %49

47:                                               ; preds = %42, %38
  %48 = load ptr, ptr %36, align 8
  br label %35, !llvm.loop !12

49:                                               ; preds = %42
  tail call fastcc void @say_access(ptr noundef nonnull @.str.18, i64 noundef %31, i64 noundef %32) #25
  tail call void @fly_say(ptr noundef nonnull @.str.19) #21
  %50 = getelementptr inbounds nuw i8, ptr %36, i64 8
  %51 = load ptr, ptr %50, align 8
  tail call void @fly_say(ptr noundef %51) #21
  tail call void @fly_say(ptr noundef nonnull @.str.20) #21
  br label %135

52:                                               ; preds = %35, %29
  tail call fastcc void @say_access(ptr noundef nonnull @.str.21, i64 noundef %31, i64 noundef %32) #25
  tail call void @fly_say(ptr noundef nonnull @.str.5) #21
  %53 = icmp ult i64 %31, 4096
  br i1 %53, label %54, label %55

54:                                               ; preds = %52
  tail call void @fly_say(ptr noundef nonnull @.str.36) #21
  br label %135

55:                                               ; preds = %52, %67
  %56 = phi ptr [ %72, %67 ], [ %0, %52 ]
  %57 = phi ptr [ %71, %67 ], [ %0, %52 ]
  %58 = icmp eq ptr %56, null
  br i1 %58, label %59, label %67

59:                                               ; preds = %55
  %60 = getelementptr inbounds nuw i8, ptr %57, i64 16
  %61 = load i64, ptr %60, align 8
  %62 = getelementptr inbounds nuw i8, ptr %57, i64 24
  %63 = load i64, ptr %62, align 8
  %64 = add i64 %63, %61
  %65 = tail call fastcc i64 @distance(ptr noundef %57, i64 noundef %31) #25
  %66 = icmp ugt i64 %65, 4294967296
  br i1 %66, label %94, label %73

67:                                               ; preds = %55
  %68 = tail call fastcc i64 @distance(ptr noundef nonnull %56, i64 noundef %31) #25
  %69 = tail call fastcc i64 @distance(ptr noundef %57, i64 noundef %31) #25
  %70 = icmp ult i64 %68, %69
  %71 = select i1 %70, ptr %56, ptr %57
  %72 = load ptr, ptr %56, align 8
  br label %55, !llvm.loop !13

73:                                               ; preds = %59
  %74 = icmp ult i64 %31, %61
  br i1 %74, label %75, label %77

75:                                               ; preds = %73
  %76 = sub nuw i64 %61, %31
  br label %86

77:                                               ; preds = %73
  %78 = icmp ult i64 %31, %64
  br i1 %78, label %79, label %82

79:                                               ; preds = %77
  tail call void @fly_say(ptr noundef nonnull @.str.39) #21
  %80 = add i64 %32, %31
  %81 = sub i64 %80, %64
  br label %86

82:                                               ; preds = %77
  %83 = icmp eq i64 %31, %64
  br i1 %83, label %89, label %84

84:                                               ; preds = %82
  %85 = sub i64 %31, %64
  br label %86

86:                                               ; preds = %84, %79, %75
  %87 = phi i64 [ %76, %75 ], [ %85, %84 ], [ %81, %79 ]
  %88 = phi ptr [ @.str.38, %75 ], [ @.str.42, %84 ], [ @.str.40, %79 ]
  tail call void @fly_say_number(i64 noundef %87) #21
  br label %89

89:                                               ; preds = %86, %82
  %90 = phi ptr [ @.str.41, %82 ], [ %88, %86 ]
  tail call void @fly_say(ptr noundef nonnull %90) #21
  tail call void @fly_say(ptr noundef nonnull @.str.43) #21
  %91 = getelementptr inbounds nuw i8, ptr %57, i64 8
  %92 = load ptr, ptr %91, align 8
  tail call void @fly_say(ptr noundef %92) #21
  tail call void @fly_say(ptr noundef nonnull @.str.44) #21
  %93 = load i64, ptr %62, align 8
  tail call void @fly_say_number(i64 noundef %93) #21
  tail call void @fly_say(ptr noundef nonnull @.str.45) #21
  br label %135

94:                                               ; preds = %59
  tail call void @fly_say(ptr noundef nonnull @.str.37) #21
  tail call void @fly_say(ptr noundef nonnull @.str.43) #21
  %95 = getelementptr inbounds nuw i8, ptr %57, i64 8
  %96 = load ptr, ptr %95, align 8
  tail call void @fly_say(ptr noundef %96) #21
  tail call void @fly_say(ptr noundef nonnull @.str.44) #21
  %97 = load i64, ptr %62, align 8
  tail call void @fly_say_number(i64 noundef %97) #21
  tail call void @fly_say(ptr noundef nonnull @.str.45) #21
  tail call void @fly_say(ptr noundef nonnull @.str.46) #21
  tail call void @fly_say_hex(i64 noundef %61) #21
  br label %135

98:                                               ; preds = %29
  tail call fastcc void @say_access(ptr noundef nonnull @.str.22, i64 noundef %31, i64 noundef %32) #25
  br label %135

99:                                               ; preds = %29
  tail call void @fly_say(ptr noundef nonnull @.str.23) #21
  br label %135

100:                                              ; preds = %29
  tail call void @fly_say(ptr noundef nonnull @.str.24) #21
  br label %135

101:                                              ; preds = %29
  %102 = load i64, ptr getelementptr inbounds nuw (i8, ptr @fly_context, i64 224), align 8
  switch i64 %32, label %103 [
    i64 6, label %113
    i64 7, label %117
  ]

103:                                              ; preds = %101
  %104 = icmp eq i64 %32, 3
  %105 = icmp sgt i64 %31, 15
  %106 = and i1 %105, %104
  br i1 %106, label %117, label %107

107:                                              ; preds = %103
  br i1 %104, label %108, label %110

108:                                              ; preds = %107
  tail call void @fly_say(ptr noundef nonnull @.str.51) #21
  tail call void @fly_say_number(i64 noundef %31) #21
  %109 = icmp eq i64 %102, 0
  br i1 %109, label %135, label %113

110:                                              ; preds = %107
  tail call void @fly_say(ptr noundef nonnull @.str.54) #21
  %111 = and i64 %31, 4294967295
  tail call void @fly_say_hex(i64 noundef %111) #21
  tail call void @fly_say(ptr noundef nonnull @.str.55) #21
  %112 = icmp eq i64 %102, 0
  br i1 %112, label %135, label %113

113:                                              ; preds = %110, %108, %101
  %114 = phi ptr [ @.str.52, %108 ], [ @.str.47, %101 ], [ @.str.52, %110 ]
  %115 = phi i64 [ %102, %108 ], [ %31, %101 ], [ %102, %110 ]
  %116 = phi ptr [ @.str.53, %108 ], [ @.str.48, %101 ], [ @.str.53, %110 ]
  tail call void @fly_say(ptr noundef nonnull %114) #21
  tail call void @fly_say_number(i64 noundef %115) #21
  br label %117

117:                                              ; preds = %113, %103, %101
  %118 = phi ptr [ @.str.50, %103 ], [ @.str.49, %101 ], [ %116, %113 ]
  tail call void @fly_say(ptr noundef nonnull %118) #21
  br label %135

119:                                              ; preds = %29
  tail call void @fly_say(ptr noundef nonnull @.str.25) #21
  tail call void @fly_say_hex(i64 noundef %31) #21
  tail call void @fly_say(ptr noundef nonnull @.str.26) #21
  br label %135

120:                                              ; preds = %29
  tail call void @fly_say(ptr noundef nonnull @.str.27) #21
  tail call void @fly_say_number(i64 noundef %31) #21
  tail call void @fly_say(ptr noundef nonnull @.str.28) #21
  tail call void @fly_say_number(i64 noundef %32) #21
  tail call void @fly_say(ptr noundef nonnull @.str.29) #21
  br label %135

121:                                              ; preds = %29
  tail call void @fly_say(ptr noundef nonnull @.str.30) #21
  tail call void @fly_say_number(i64 noundef %32) #21
  tail call void @fly_say(ptr noundef nonnull @.str.31) #21
  br label %135

122:                                              ; preds = %29
  tail call void @fly_say(ptr noundef nonnull @.str.32) #21
  tail call void @fly_say_hex(i64 noundef %31) #21
  tail call void @fly_say(ptr noundef nonnull @.str.5) #21
  %123 = shl i64 %32, 2
  %124 = call ptr @llvm.load.relative.i64(ptr @mbarriers.rel, i64 %123)
  tail call void @fly_say(ptr noundef %124) #21
  br label %135

125:                                              ; preds = %29
  tail call void @fly_say(ptr noundef nonnull @.str.33) #21
  tail call void @fly_say_hex(i64 noundef %31) #21
  br label %135

126:                                              ; preds = %29
  %127 = shl i64 %32, 2
  %128 = call ptr @llvm.load.relative.i64(ptr @clusters.rel, i64 %127)
  tail call void @fly_say(ptr noundef %128) #21
  %129 = icmp eq i64 %31, 0
  br i1 %129, label %135, label %130

130:                                              ; preds = %126
  tail call void @fly_say_number(i64 noundef %31) #21
  br label %135

131:                                              ; preds = %29
  tail call void @fly_say(ptr noundef nonnull @.str.34) #21
  %132 = icmp eq i64 %31, 0
  br i1 %132, label %135, label %133

133:                                              ; preds = %131
  %134 = inttoptr i64 %31 to ptr
  tail call void @fly_say(ptr noundef nonnull %134) #21
  br label %135

135:                                              ; preds = %49, %54, %89, %94, %98, %99, %100, %108, %110, %117, %119, %120, %121, %122, %125, %126, %130, %131, %133
  tail call void @fly_say(ptr noundef nonnull @.str.6) #21
  tail call void @fly_say(ptr noundef %1) #21
  %136 = load ptr, ptr %5, align 8
  %137 = load i8, ptr %136, align 1
  %138 = icmp eq i8 %137, 0
  br i1 %138, label %140, label %139

139:                                              ; preds = %135
  tail call void @fly_say(ptr noundef nonnull @.str.7) #21
  tail call void @fly_say(ptr noundef nonnull %136) #21
  tail call void @fly_say(ptr noundef nonnull @.str.8) #21
  br label %140

140:                                              ; preds = %139, %135
  tail call void @fly_say(ptr noundef nonnull @.str.3) #21
  tail call void @fly_say_array(ptr noundef nonnull getelementptr inbounds nuw (i8, ptr @fly_context, i64 192), i64 noundef 3) #21
  tail call void @fly_say(ptr noundef nonnull @.str.9) #21
  call void @fly_say_array(ptr noundef nonnull %3, i64 noundef 3) #21
  call void @llvm.lifetime.end.p0(ptr nonnull %3) #24
  ret void
}

declare void @fly_say_number(i64 noundef) local_unnamed_addr #1

define hidden void @fly_print(ptr noundef readonly captures(none) %0, ptr noundef %1) local_unnamed_addr #7 {
  %3 = alloca [4 x i8], align 1
  %4 = alloca [32 x i8], align 16
  %5 = alloca [64 x i8], align 16
  %6 = getelementptr inbounds nuw i8, ptr %3, i64 1
  %7 = getelementptr inbounds nuw i8, ptr %3, i64 2
  %8 = getelementptr inbounds nuw i8, ptr %3, i64 3
  br label %9

9:                                                ; preds = %204, %2
  %10 = phi ptr [ %1, %2 ], [ %205, %204 ]
  %11 = phi ptr [ %0, %2 ], [ %207, %204 ]
  %12 = freeze ptr %10
  %13 = load i8, ptr %11, align 1
  %14 = icmp eq i8 %13, 0
  br i1 %14, label %15, label %18

15:                                               ; preds = %9
  %16 = load ptr, ptr @stdout, align 8
  %17 = call i32 @fflush(ptr noundef %16) #25
  ret void

18:                                               ; preds = %9
  call void @llvm.lifetime.start.p0(ptr nonnull %5) #24
  %19 = icmp eq i8 %13, 37
  br i1 %19, label %20, label %198

20:                                               ; preds = %18
  store i8 37, ptr %5, align 16
  br label %21

21:                                               ; preds = %35, %20
  %22 = phi i64 [ 1, %20 ], [ %36, %35 ]
  %23 = phi ptr [ %11, %20 ], [ %24, %35 ]
  %24 = getelementptr inbounds nuw i8, ptr %23, i64 1
  %25 = getelementptr inbounds nuw i8, ptr %5, i64 %22
  %26 = load i8, ptr %24, align 1
  %27 = icmp eq i8 %26, 0
  br i1 %27, label %28, label %29

28:                                               ; preds = %29, %21
  br label %37

29:                                               ; preds = %21
  %30 = sext i8 %26 to i32
  %31 = call ptr @memchr(ptr noundef nonnull dereferenceable(1) @.str.63, i32 %30, i64 6)
  %32 = icmp ne ptr %31, null
  %33 = icmp samesign ult i64 %22, 40
  %34 = select i1 %32, i1 %33, i1 false
  br i1 %34, label %35, label %28

35:                                               ; preds = %29
  %36 = add nuw nsw i64 %22, 1
  store i8 %26, ptr %25, align 1
  br label %21, !llvm.loop !14

37:                                               ; preds = %28, %85
  %38 = phi i8 [ %76, %85 ], [ %26, %28 ]
  %39 = phi ptr [ %70, %85 ], [ %12, %28 ]
  %40 = phi i64 [ %74, %85 ], [ %22, %28 ]
  %41 = phi ptr [ %75, %85 ], [ %24, %28 ]
  %42 = phi i32 [ %86, %85 ], [ 0, %28 ]
  %43 = getelementptr inbounds i8, ptr %5, i64 %40
  switch i32 %42, label %45 [
    i32 2, label %44
    i32 0, label %51
  ]

44:                                               ; preds = %45, %37
  br label %87

45:                                               ; preds = %37
  %46 = icmp eq i8 %38, 46
  br i1 %46, label %47, label %44

47:                                               ; preds = %45
  %48 = getelementptr inbounds nuw i8, ptr %41, i64 1
  %49 = add nsw i64 %40, 1
  store i8 46, ptr %43, align 1
  %50 = load i8, ptr %48, align 1
  br label %51

51:                                               ; preds = %47, %37
  %52 = phi i8 [ %50, %47 ], [ %38, %37 ]
  %53 = phi i64 [ %49, %47 ], [ %40, %37 ]
  %54 = phi ptr [ %48, %47 ], [ %41, %37 ]
  %55 = icmp eq i8 %52, 42
  br i1 %55, label %56, label %69

56:                                               ; preds = %51
  %57 = getelementptr inbounds i8, ptr %5, i64 %53
  %58 = getelementptr inbounds nuw i8, ptr %54, i64 1
  %59 = ptrtoint ptr %39 to i64
  %60 = add i64 %59, 3
  %61 = and i64 %60, -4
  %62 = add i64 %61, 4
  %63 = inttoptr i64 %62 to ptr
  %64 = inttoptr i64 %61 to ptr
  %65 = load i32, ptr %64, align 4
  %66 = call i32 (ptr, i64, ptr, ...) @snprintf(ptr noundef nonnull dereferenceable(1) %57, i64 noundef 16, ptr noundef nonnull @.str.64, i32 noundef %65) #21
  %67 = sext i32 %66 to i64
  %68 = add nsw i64 %53, %67
  br label %69

69:                                               ; preds = %56, %51
  %70 = phi ptr [ %63, %56 ], [ %39, %51 ]
  %71 = phi i64 [ %68, %56 ], [ %53, %51 ]
  %72 = phi ptr [ %58, %56 ], [ %54, %51 ]
  br label %73

73:                                               ; preds = %81, %69
  %74 = phi i64 [ %71, %69 ], [ %84, %81 ]
  %75 = phi ptr [ %72, %69 ], [ %83, %81 ]
  %76 = load i8, ptr %75, align 1
  %77 = add i8 %76, -48
  %78 = icmp ult i8 %77, 10
  %79 = icmp slt i64 %74, 40
  %80 = select i1 %78, i1 %79, i1 false
  br i1 %80, label %81, label %85

81:                                               ; preds = %73
  %82 = getelementptr inbounds i8, ptr %5, i64 %74
  %83 = getelementptr inbounds nuw i8, ptr %75, i64 1
  %84 = add nsw i64 %74, 1
  store i8 %76, ptr %82, align 1
  br label %73, !llvm.loop !15

85:                                               ; preds = %73
  %86 = add nuw nsw i32 %42, 1
  br label %37, !llvm.loop !16

87:                                               ; preds = %44, %96
  %88 = phi i8 [ %100, %96 ], [ %38, %44 ]
  %89 = phi i1 [ %99, %96 ], [ false, %44 ]
  %90 = phi ptr [ %97, %96 ], [ %41, %44 ]
  %91 = icmp eq i8 %88, 0
  br i1 %91, label %101, label %92

92:                                               ; preds = %87
  %93 = sext i8 %88 to i32
  %94 = call ptr @memchr(ptr noundef nonnull dereferenceable(1) @.str.65, i32 %93, i64 6)
  %95 = icmp eq ptr %94, null
  br i1 %95, label %101, label %96

96:                                               ; preds = %92
  %97 = getelementptr inbounds nuw i8, ptr %90, i64 1
  %98 = icmp ne i8 %88, 104
  %99 = or i1 %89, %98
  %100 = load i8, ptr %97, align 1
  br label %87, !llvm.loop !17

101:                                              ; preds = %92, %87
  store i8 0, ptr %43, align 1
  %102 = load i8, ptr %90, align 1
  %103 = icmp eq i8 %102, 0
  br i1 %103, label %194, label %104

104:                                              ; preds = %101
  %105 = sext i8 %102 to i32
  %106 = call ptr @memchr(ptr noundef nonnull dereferenceable(1) @.str.66, i32 %105, i64 19)
  %107 = icmp eq ptr %106, null
  br i1 %107, label %194, label %108

108:                                              ; preds = %104
  %109 = call i64 @strlen(ptr noundef nonnull dereferenceable(1) %5) #26
  call void @llvm.lifetime.start.p0(ptr nonnull %3) #24
  store i8 108, ptr %3, align 1
  store i8 108, ptr %6, align 1
  store i8 %102, ptr %7, align 1
  store i8 0, ptr %8, align 1
  %110 = icmp eq i8 %102, 37
  br i1 %110, label %111, label %114

111:                                              ; preds = %108
  %112 = load ptr, ptr @stdout, align 8
  %113 = call i32 @fputc(i32 noundef 37, ptr noundef %112) #25
  br label %192

114:                                              ; preds = %108
  %115 = call ptr @memchr(ptr noundef nonnull dereferenceable(1) @.str.67, i32 %105, i64 7)
  %116 = icmp eq ptr %115, null
  br i1 %116, label %145, label %117

117:                                              ; preds = %114
  %118 = getelementptr inbounds nuw i8, ptr %5, i64 %109
  %119 = call ptr @strcpy(ptr noundef nonnull dereferenceable(1) %118, ptr noundef nonnull dereferenceable(1) %3) #21
  %120 = icmp eq i8 %102, 100
  %121 = icmp eq i8 %102, 105
  %122 = or i1 %120, %121
  %123 = ptrtoint ptr %39 to i64
  br i1 %89, label %124, label %130

124:                                              ; preds = %117
  %125 = add i64 %123, 7
  %126 = and i64 %125, -8
  %127 = add i64 %126, 8
  %128 = inttoptr i64 %126 to ptr
  %129 = load i64, ptr %128, align 8
  br label %137

130:                                              ; preds = %117
  %131 = add i64 %123, 3
  %132 = and i64 %131, -4
  %133 = add i64 %132, 4
  %134 = inttoptr i64 %132 to ptr
  %135 = load i32, ptr %134, align 4
  %136 = sext i32 %135 to i64
  br label %137

137:                                              ; preds = %130, %124
  %138 = phi i64 [ %127, %124 ], [ %133, %130 ]
  %139 = phi i64 [ %129, %124 ], [ %136, %130 ]
  %140 = inttoptr i64 %138 to ptr
  %141 = or i1 %89, %122
  %142 = and i64 %139, 4294967295
  %143 = select i1 %141, i64 %139, i64 %142
  %144 = call i32 (ptr, ...) @printf(ptr noundef nonnull dereferenceable(1) %5, i64 noundef %143) #25
  br label %192

145:                                              ; preds = %114
  switch i8 %102, label %181 [
    i8 99, label %146
    i8 115, label %157
    i8 112, label %170
  ]

146:                                              ; preds = %145
  %147 = getelementptr inbounds nuw i8, ptr %5, i64 %109
  store i16 99, ptr %147, align 1
  %148 = ptrtoint ptr %39 to i64
  %149 = add i64 %148, 3
  %150 = and i64 %149, -4
  %151 = add i64 %150, 4
  %152 = inttoptr i64 %151 to ptr
  %153 = inttoptr i64 %150 to ptr
  %154 = load i32, ptr %153, align 4
  %155 = and i32 %154, 255
  %156 = call i32 (ptr, ...) @printf(ptr noundef nonnull dereferenceable(1) %5, i32 noundef %155) #25
  br label %192

157:                                              ; preds = %145
  %158 = ptrtoint ptr %39 to i64
  %159 = add i64 %158, 7
  %160 = and i64 %159, -8
  %161 = add i64 %160, 8
  %162 = inttoptr i64 %161 to ptr
  %163 = inttoptr i64 %160 to ptr
  %164 = load i64, ptr %163, align 8
  %165 = inttoptr i64 %164 to ptr
  %166 = getelementptr inbounds nuw i8, ptr %5, i64 %109
  store i16 115, ptr %166, align 1
  %167 = icmp eq i64 %164, 0
  %168 = select i1 %167, ptr @.str.70, ptr %165
  %169 = call i32 (ptr, ...) @printf(ptr noundef nonnull dereferenceable(1) %5, ptr noundef %168) #25
  br label %192

170:                                              ; preds = %145
  call void @llvm.lifetime.start.p0(ptr nonnull %4) #24
  %171 = ptrtoint ptr %39 to i64
  %172 = add i64 %171, 7
  %173 = and i64 %172, -8
  %174 = add i64 %173, 8
  %175 = inttoptr i64 %174 to ptr
  %176 = inttoptr i64 %173 to ptr
  %177 = load i64, ptr %176, align 8
  %178 = call i32 (ptr, i64, ptr, ...) @snprintf(ptr noundef nonnull dereferenceable(1) %4, i64 noundef 32, ptr noundef nonnull @.str.71, i64 noundef %177) #21
  %179 = getelementptr inbounds nuw i8, ptr %5, i64 %109
  store i16 115, ptr %179, align 1
  %180 = call i32 (ptr, ...) @printf(ptr noundef nonnull dereferenceable(1) %5, ptr noundef nonnull %4) #25
  call void @llvm.lifetime.end.p0(ptr nonnull %4) #24
  br label %192

181:                                              ; preds = %145
  %182 = ptrtoint ptr %39 to i64
  %183 = add i64 %182, 7
  %184 = and i64 %183, -8
  %185 = add i64 %184, 8
  %186 = inttoptr i64 %185 to ptr
  %187 = inttoptr i64 %184 to ptr
  %188 = load double, ptr %187, align 8
  %189 = getelementptr inbounds nuw i8, ptr %5, i64 %109
  store i8 %102, ptr %189, align 1
  %190 = getelementptr i8, ptr %189, i64 1
  store i8 0, ptr %190, align 1
  %191 = call i32 (ptr, ...) @printf(ptr noundef nonnull dereferenceable(1) %5, double noundef %188) #25
  br label %192

192:                                              ; preds = %111, %137, %146, %157, %170, %181
  %193 = phi ptr [ %39, %111 ], [ %186, %181 ], [ %152, %146 ], [ %162, %157 ], [ %175, %170 ], [ %140, %137 ]
  call void @llvm.lifetime.end.p0(ptr nonnull %3) #24
  br label %204

194:                                              ; preds = %104, %101
  %195 = load i8, ptr %11, align 1
  %196 = icmp eq i8 %195, 37
  %197 = select i1 %196, ptr %12, ptr %39
  br label %198

198:                                              ; preds = %194, %18
  %199 = phi i8 [ %13, %18 ], [ %195, %194 ]
  %200 = phi ptr [ %12, %18 ], [ %197, %194 ]
  %201 = sext i8 %199 to i32
  %202 = load ptr, ptr @stdout, align 8
  %203 = call i32 @fputc(i32 noundef %201, ptr noundef %202) #25
  br label %204

204:                                              ; preds = %198, %192
  %205 = phi ptr [ %200, %198 ], [ %193, %192 ]
  %206 = phi ptr [ %11, %198 ], [ %90, %192 ]
  call void @llvm.lifetime.end.p0(ptr nonnull %5) #24
  %207 = getelementptr inbounds nuw i8, ptr %206, i64 1
  br label %9, !llvm.loop !18
}

declare noundef i32 @fputc(i32 noundef, ptr noundef captures(none)) local_unnamed_addr #8

declare noundef i32 @fflush(ptr noundef captures(none)) local_unnamed_addr #8

declare ptr @mmap(ptr noundef, i64 noundef, i32 noundef, i32 noundef, i32 noundef, i64 noundef) local_unnamed_addr #9

declare i32 @munmap(ptr noundef, i64 noundef) local_unnamed_addr #9

declare noundef ptr @getenv(ptr noundef captures(none)) local_unnamed_addr #10

declare double @strtod(ptr noundef readonly, ptr noundef captures(none)) local_unnamed_addr #11

define internal fastcc double @now() unnamed_addr #0 {
  %1 = alloca %struct.timespec, align 8
  call void @llvm.lifetime.start.p0(ptr nonnull %1) #24
  %2 = call i32 @clock_gettime(i32 noundef 1, ptr noundef nonnull %1) #21
  %3 = load i64, ptr %1, align 8
  %4 = sitofp i64 %3 to double
  %5 = getelementptr inbounds nuw i8, ptr %1, i64 8
  %6 = load i64, ptr %5, align 8
  %7 = sitofp i64 %6 to double
  %8 = call double @llvm.fmuladd.f64(double %7, double 1.000000e-09, double %4)
  call void @llvm.lifetime.end.p0(ptr nonnull %1) #24
  ret double %8
}

declare i64 @fly_run(i64 noundef) local_unnamed_addr #1

declare void @fly_say_float(double noundef) local_unnamed_addr #1

declare i32 @clock_gettime(i32 noundef, ptr noundef) local_unnamed_addr #9

declare double @llvm.fmuladd.f64(double, double, double) #12

define internal fastcc void @say_access(ptr noundef %0, i64 noundef %1, i64 noundef %2) unnamed_addr #0 {
  tail call void @fly_say(ptr noundef %0) #21
  tail call void @fly_say_number(i64 noundef %2) #21
  tail call void @fly_say(ptr noundef nonnull @.str.35) #21
  tail call void @fly_say_hex(i64 noundef %1) #21
  ret void
}

declare void @fly_say_hex(i64 noundef) local_unnamed_addr #1

define internal fastcc i64 @distance(ptr noundef readonly captures(none) %0, i64 noundef range(i64 4096, 0) %1) unnamed_addr #13 {
  %3 = getelementptr inbounds nuw i8, ptr %0, i64 16
  %4 = load i64, ptr %3, align 8
  %5 = icmp ult i64 %1, %4
  br i1 %5, label %6, label %8

6:                                                ; preds = %2
  %7 = sub nuw i64 %4, %1
  br label %16

8:                                                ; preds = %2
  %9 = getelementptr inbounds nuw i8, ptr %0, i64 24
  %10 = load i64, ptr %9, align 8
  %11 = add i64 %10, %4
  %12 = icmp ult i64 %1, %11
  %13 = add i64 %1, 1
  %14 = sub i64 %13, %11
  %15 = select i1 %12, i64 0, i64 %14
  br label %16

16:                                               ; preds = %8, %6
  %17 = phi i64 [ %7, %6 ], [ %15, %8 ]
  ret i64 %17
}

declare noundef i32 @snprintf(ptr noalias noundef writeonly captures(none), i64 noundef, ptr noundef readonly captures(none), ...) local_unnamed_addr #8

declare i64 @strlen(ptr noundef captures(none)) local_unnamed_addr #14

declare ptr @strcpy(ptr noalias noundef returned writeonly, ptr noalias noundef readonly captures(none)) local_unnamed_addr #15

declare noundef i32 @printf(ptr noundef readonly captures(none), ...) local_unnamed_addr #8

declare ptr @memchr(ptr, i32, i64) local_unnamed_addr #16

declare i32 @llvm.smax.i32(i32, i32) #17

declare void @llvm.memset.p0.i64(ptr writeonly captures(none), i8, i64, i1 immarg) #18

declare ptr @llvm.load.relative.i64(ptr, i64) #19

attributes #0 = { minsize nounwind optsize }
attributes #1 = { minsize optsize }
attributes #2 = { mustprogress nocallback nofree nosync nounwind willreturn memory(argmem: readwrite) }
attributes #3 = { minsize mustprogress nofree nounwind optsize willreturn allockind("alloc,uninitialized,aligned") allocsize(1) memory(inaccessiblemem: readwrite) "alloc-family"="malloc" }
attributes #4 = { minsize mustprogress nofree nounwind optsize willreturn allockind("alloc,zeroed") allocsize(0,1) memory(inaccessiblemem: readwrite) "alloc-family"="malloc" }
attributes #5 = { mustprogress nocallback nofree nounwind willreturn memory(argmem: readwrite) }
attributes #6 = { minsize mustprogress nounwind optsize willreturn allockind("free") memory(argmem: readwrite, inaccessiblemem: readwrite) "alloc-family"="malloc" }
attributes #7 = { minsize nofree nounwind optsize }
attributes #8 = { minsize nofree nounwind optsize }
attributes #9 = { minsize nounwind optsize }
attributes #10 = { minsize nofree nounwind optsize memory(read) }
attributes #11 = { minsize mustprogress nocallback nofree nounwind optsize willreturn }
attributes #12 = { mustprogress nocallback nocreateundeforpoison nofree nosync nounwind speculatable willreturn memory(none) }
attributes #13 = { minsize mustprogress nofree norecurse nosync nounwind optsize willreturn memory(argmem: read) }
attributes #14 = { minsize mustprogress nocallback nofree nounwind optsize willreturn memory(argmem: read) }
attributes #15 = { minsize mustprogress nocallback nofree nounwind optsize willreturn memory(argmem: readwrite) }
attributes #16 = { nocallback nofree nounwind willreturn memory(argmem: read) }
attributes #17 = { nocallback nocreateundeforpoison nofree nosync nounwind speculatable willreturn memory(none) }
attributes #18 = { nocallback nofree nounwind willreturn memory(argmem: write) }
attributes #19 = { nocallback nofree nosync nounwind willreturn memory(argmem: read) }
attributes #20 = { nounwind memory(none) }
attributes #21 = { minsize nounwind optsize }
attributes #22 = { minsize nounwind optsize allocsize(1) }
attributes #23 = { minsize nounwind optsize allocsize(0,1) }
attributes #24 = { nounwind }
attributes #25 = { minsize optsize }
attributes #26 = { minsize nounwind optsize willreturn memory(read) }

!llvm.module.flags = !{!0, !1}

!0 = !{i32 1, !"wchar_size", i32 4}
!1 = !{i32 8, !"PIC Level", i32 2}
!2 = !{i64 2147659135, i64 2147659217, i64 2147659298}
!3 = !{i64 2147659511, i64 2147659593, i64 2147659674}
!4 = !{i64 2147659891, i64 2147659973, i64 2147660054}
!5 = distinct !{!5, !6}
!6 = !{!"llvm.loop.mustprogress"}
!7 = distinct !{!7, !6}
!8 = distinct !{!8, !6}
!9 = distinct !{!9, !6}
!10 = distinct !{!10, !6}
!11 = distinct !{!11, !6}
!12 = distinct !{!12, !6}
!13 = distinct !{!13, !6}
!14 = distinct !{!14, !6}
!15 = distinct !{!15, !6}
!16 = distinct !{!16, !6}
!17 = distinct !{!17, !6}
!18 = distinct !{!18, !6}
