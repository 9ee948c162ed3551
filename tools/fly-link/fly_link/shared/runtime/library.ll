; Made by scripts/library-runtime. sha256 of the sources:
; 35fbf570394727ba861c586faa0f6c1caa7ea77feb8c1416bd5814b47b006c80

%struct.Lock = type { [64 x i8] }
%struct.Device = type { i32, i32, i32, %struct.Place, ptr, ptr, ptr, ptr }
%struct.Place = type { i32, i32 }
%struct.Target = type { ptr, ptr, i32, i32, i32, i32, i32, i32, ptr, ptr }

@length = internal thread_local unnamed_addr global i64 0, align 8
@text = internal thread_local global [4096 x i8] zeroinitializer, align 16
@.str = private unnamed_addr constant [5 x i8] c"%lld\00", align 1
@.str.1 = private unnamed_addr constant [7 x i8] c"0x%llx\00", align 1
@.str.2 = private unnamed_addr constant [5 x i8] c"%.*e\00", align 1
@.str.3 = private unnamed_addr constant [5 x i8] c"%.*f\00", align 1
@.str.4 = private unnamed_addr constant [2 x i8] c"(\00", align 1
@.str.5 = private unnamed_addr constant [3 x i8] c", \00", align 1
@.str.6 = private unnamed_addr constant [3 x i8] c",)\00", align 1
@.str.7 = private unnamed_addr constant [2 x i8] c")\00", align 1
@.str.8 = private unnamed_addr constant [3 x i8] c"\C3\97\00", align 1
@fly_say_dtype.plain.rel = internal unnamed_addr constant [7 x i32] [i32 trunc (i64 sub (i64 ptrtoint (ptr @.str.9 to i64), i64 ptrtoint (ptr @fly_say_dtype.plain.rel to i64)) to i32), i32 trunc (i64 sub (i64 ptrtoint (ptr @.str.10 to i64), i64 ptrtoint (ptr @fly_say_dtype.plain.rel to i64)) to i32), i32 trunc (i64 sub (i64 ptrtoint (ptr @.str.11 to i64), i64 ptrtoint (ptr @fly_say_dtype.plain.rel to i64)) to i32), i32 trunc (i64 sub (i64 ptrtoint (ptr @.str.12 to i64), i64 ptrtoint (ptr @fly_say_dtype.plain.rel to i64)) to i32), i32 trunc (i64 sub (i64 ptrtoint (ptr @.str.13 to i64), i64 ptrtoint (ptr @fly_say_dtype.plain.rel to i64)) to i32), i32 trunc (i64 sub (i64 ptrtoint (ptr @.str.14 to i64), i64 ptrtoint (ptr @fly_say_dtype.plain.rel to i64)) to i32), i32 trunc (i64 sub (i64 ptrtoint (ptr @.str.15 to i64), i64 ptrtoint (ptr @fly_say_dtype.plain.rel to i64)) to i32)], align 4
@.str.9 = private unnamed_addr constant [2 x i8] c"i\00", align 1
@.str.10 = private unnamed_addr constant [2 x i8] c"u\00", align 1
@.str.11 = private unnamed_addr constant [2 x i8] c"f\00", align 1
@.str.12 = private unnamed_addr constant [19 x i8] c"an opaque type of \00", align 1
@.str.13 = private unnamed_addr constant [3 x i8] c"bf\00", align 1
@.str.14 = private unnamed_addr constant [8 x i8] c"complex\00", align 1
@.str.15 = private unnamed_addr constant [5 x i8] c"bool\00", align 1
@fly_say_dtype.eights = internal unnamed_addr constant [5 x ptr] [ptr @.str.16, ptr @.str.17, ptr @.str.18, ptr @.str.19, ptr @.str.20], align 16
@.str.16 = private unnamed_addr constant [9 x i8] c"f8E4M3FN\00", align 1
@.str.17 = private unnamed_addr constant [11 x i8] c"f8E4M3FNUZ\00", align 1
@.str.18 = private unnamed_addr constant [7 x i8] c"f8E5M2\00", align 1
@.str.19 = private unnamed_addr constant [11 x i8] c"f8E5M2FNUZ\00", align 1
@.str.20 = private unnamed_addr constant [10 x i8] c"f8E8M0FNU\00", align 1
@.str.21 = private unnamed_addr constant [23 x i8] c"of DLPack's type code \00", align 1
@.str.22 = private unnamed_addr constant [2 x i8] c"x\00", align 1
@.str.23 = private unnamed_addr constant [15 x i8] c"in host memory\00", align 1
@.str.24 = private unnamed_addr constant [4 x i8] c"on \00", align 1
@.str.25 = private unnamed_addr constant [6 x i8] c"cuda:\00", align 1
@.str.26 = private unnamed_addr constant [6 x i8] c"rocm:\00", align 1
@.str.27 = private unnamed_addr constant [22 x i8] c"DLPack's device type \00", align 1
@.str.28 = private unnamed_addr constant [10 x i8] c", number \00", align 1
@.str.29 = private unnamed_addr constant [3 x i8] c": \00", align 1
@.str.30 = private unnamed_addr constant [12 x i8] c" bytes for \00", align 1
@.str.31 = private unnamed_addr constant [24 x i8] c"there is no memory for \00", align 1
@.str.32 = private unnamed_addr constant [7 x i8] c" bytes\00", align 1
@.str.33 = private unnamed_addr constant [32 x i8] c"there is no memory for a result\00", align 1
@.str.34 = private unnamed_addr constant [10 x i8] c" failed: \00", align 1
@.str.35 = private unnamed_addr constant [8 x i8] c"status \00", align 1
@guard = internal global %struct.Lock zeroinitializer, align 16
@.str.36 = private unnamed_addr constant [20 x i8] c"there is no device \00", align 1
@.str.37 = private unnamed_addr constant [2 x i8] c":\00", align 1
@cuda_devices = internal global [64 x %struct.Device] zeroinitializer, align 16
@hip_devices = internal global [64 x %struct.Device] zeroinitializer, align 16
@loading = internal global %struct.Lock zeroinitializer, align 16
@.str.38 = private unnamed_addr constant [8 x i8] c"kernel \00", align 1
@fly_targets = external local_unnamed_addr constant [0 x %struct.Target], align 8
@fly_target_count = external local_unnamed_addr constant i32, align 4
@.str.39 = private unnamed_addr constant [37 x i8] c"the library has no code for tensors \00", align 1
@.str.40 = private unnamed_addr constant [19 x i8] c"; it has code for \00", align 1
@fly_target_names = external constant [0 x i8], align 1
@.str.41 = private unnamed_addr constant [19 x i8] c" is a null pointer\00", align 1
@fly_cpu = external local_unnamed_addr constant ptr, align 8
@.str.42 = private unnamed_addr constant [5 x i8] c"rocm\00", align 1
@.str.43 = private unnamed_addr constant [17 x i8] c"libamdhip64.so.7\00", align 1
@.str.44 = private unnamed_addr constant [17 x i8] c"libamdhip64.so.6\00", align 1
@.str.45 = private unnamed_addr constant [15 x i8] c"libamdhip64.so\00", align 1
@.str.46 = private unnamed_addr constant [29 x i8] c"/opt/rocm/lib/libamdhip64.so\00", align 1
@.str.47 = private unnamed_addr constant [8 x i8] c"hipInit\00", align 1
@.str.48 = private unnamed_addr constant [18 x i8] c"hipGetDeviceCount\00", align 1
@.str.49 = private unnamed_addr constant [28 x i8] c"hipGetDevicePropertiesR0600\00", align 1
@.str.50 = private unnamed_addr constant [13 x i8] c"hipGetDevice\00", align 1
@.str.51 = private unnamed_addr constant [13 x i8] c"hipSetDevice\00", align 1
@.str.52 = private unnamed_addr constant [18 x i8] c"hipModuleLoadData\00", align 1
@.str.53 = private unnamed_addr constant [21 x i8] c"hipModuleGetFunction\00", align 1
@.str.54 = private unnamed_addr constant [22 x i8] c"hipModuleLaunchKernel\00", align 1
@.str.55 = private unnamed_addr constant [10 x i8] c"hipMalloc\00", align 1
@.str.56 = private unnamed_addr constant [15 x i8] c"hipMallocAsync\00", align 1
@.str.57 = private unnamed_addr constant [8 x i8] c"hipFree\00", align 1
@.str.58 = private unnamed_addr constant [13 x i8] c"hipFreeAsync\00", align 1
@.str.59 = private unnamed_addr constant [16 x i8] c"hipGetErrorName\00", align 1
@.str.60 = private unnamed_addr constant [18 x i8] c"hipGetErrorString\00", align 1
@.str.61 = private unnamed_addr constant [18 x i8] c"            ? ?  \00", align 1
@hip = internal global { ptr, [5 x ptr], [17 x ptr], ptr, i64, i32, [4 x i8], [17 x ptr] } { ptr @.str.42, [5 x ptr] [ptr @.str.43, ptr @.str.44, ptr @.str.45, ptr @.str.46, ptr null], [17 x ptr] [ptr @.str.47, ptr @.str.48, ptr @.str.49, ptr null, ptr @.str.50, ptr @.str.51, ptr @.str.52, ptr @.str.53, ptr null, ptr null, ptr @.str.54, ptr @.str.55, ptr @.str.56, ptr @.str.57, ptr @.str.58, ptr @.str.59, ptr @.str.60], ptr @.str.61, i64 3, i32 0, [4 x i8] zeroinitializer, [17 x ptr] zeroinitializer }, align 8
@missing.known = internal unnamed_addr constant [16 x i32] [i32 2, i32 3, i32 34, i32 35, i32 36, i32 46, i32 100, i32 101, i32 102, i32 221, i32 223, i32 800, i32 802, i32 803, i32 804, i32 805], align 16
@.str.63 = private unnamed_addr constant [5 x i8] c"cuda\00", align 1
@.str.64 = private unnamed_addr constant [13 x i8] c"libcuda.so.1\00", align 1
@.str.65 = private unnamed_addr constant [11 x i8] c"libcuda.so\00", align 1
@.str.66 = private unnamed_addr constant [7 x i8] c"cuInit\00", align 1
@.str.67 = private unnamed_addr constant [17 x i8] c"cuDeviceGetCount\00", align 1
@.str.68 = private unnamed_addr constant [21 x i8] c"cuDeviceGetAttribute\00", align 1
@.str.69 = private unnamed_addr constant [25 x i8] c"cuDevicePrimaryCtxRetain\00", align 1
@.str.70 = private unnamed_addr constant [16 x i8] c"cuCtxGetCurrent\00", align 1
@.str.71 = private unnamed_addr constant [16 x i8] c"cuCtxSetCurrent\00", align 1
@.str.72 = private unnamed_addr constant [19 x i8] c"cuModuleLoadDataEx\00", align 1
@.str.73 = private unnamed_addr constant [20 x i8] c"cuModuleGetFunction\00", align 1
@.str.74 = private unnamed_addr constant [19 x i8] c"cuFuncGetAttribute\00", align 1
@.str.75 = private unnamed_addr constant [19 x i8] c"cuFuncSetAttribute\00", align 1
@.str.76 = private unnamed_addr constant [15 x i8] c"cuLaunchKernel\00", align 1
@.str.77 = private unnamed_addr constant [14 x i8] c"cuMemAlloc_v2\00", align 1
@.str.78 = private unnamed_addr constant [16 x i8] c"cuMemAllocAsync\00", align 1
@.str.79 = private unnamed_addr constant [13 x i8] c"cuMemFree_v2\00", align 1
@.str.80 = private unnamed_addr constant [15 x i8] c"cuMemFreeAsync\00", align 1
@.str.81 = private unnamed_addr constant [15 x i8] c"cuGetErrorName\00", align 1
@.str.82 = private unnamed_addr constant [17 x i8] c"cuGetErrorString\00", align 1
@cuda = internal global { ptr, [5 x ptr], [17 x ptr], ptr, i64, i32, [4 x i8], [17 x ptr] } { ptr @.str.63, [5 x ptr] [ptr @.str.64, ptr @.str.65, ptr null, ptr null, ptr null], [17 x ptr] [ptr @.str.66, ptr @.str.67, ptr @.str.68, ptr @.str.69, ptr @.str.70, ptr @.str.71, ptr @.str.72, ptr @.str.73, ptr @.str.74, ptr @.str.75, ptr @.str.76, ptr @.str.77, ptr @.str.78, ptr @.str.79, ptr @.str.80, ptr @.str.81, ptr @.str.82], ptr @.str.61, i64 0, i32 0, [4 x i8] zeroinitializer, [17 x ptr] zeroinitializer }, align 8
@.str.84 = private unnamed_addr constant [33 x i8] c" can't be loaded, which devices \00", align 1
@.str.85 = private unnamed_addr constant [6 x i8] c" need\00", align 1
@.str.86 = private unnamed_addr constant [23 x i8] c"the driver of devices \00", align 1
@.str.87 = private unnamed_addr constant [18 x i8] c" has no function \00", align 1
@.str.88 = private unnamed_addr constant [13 x i8] c"; there are \00", align 1
@.str.89 = private unnamed_addr constant [4 x i8] c"sm_\00", align 1
@.str.90 = private unnamed_addr constant [29 x i8] c"the library has no code for \00", align 1
@.str.91 = private unnamed_addr constant [12 x i8] c", which is \00", align 1
@.str.92 = private unnamed_addr constant [2 x i8] c"\0A\00", align 1

define hidden void @fly_clear() local_unnamed_addr #0 {
  %1 = tail call align 8 ptr @llvm.threadlocal.address.p0(ptr align 8 @length)
  store i64 0, ptr %1, align 8
  %2 = tail call align 16 ptr @llvm.threadlocal.address.p0(ptr align 16 @text)
  store i8 0, ptr %2, align 16
  ret void
}

declare nonnull ptr @llvm.threadlocal.address.p0(ptr nonnull) #1

define hidden nonnull ptr @fly_text() local_unnamed_addr #2 {
  %1 = tail call align 16 ptr @llvm.threadlocal.address.p0(ptr align 16 @text)
  ret ptr %1
}

define hidden void @fly_say(ptr noundef readonly captures(none) %0) local_unnamed_addr #3 {
  %2 = tail call i64 @strlen(ptr noundef nonnull dereferenceable(1) %0) #27
  %3 = tail call align 8 ptr @llvm.threadlocal.address.p0(ptr align 8 @length)
  %4 = load i64, ptr %3, align 8
  %5 = sub i64 4095, %4
  %6 = tail call i64 @llvm.umin.i64(i64 %2, i64 %5)
  %7 = tail call align 16 ptr @llvm.threadlocal.address.p0(ptr align 16 @text)
  %8 = getelementptr inbounds nuw i8, ptr %7, i64 %4
  tail call void @llvm.memcpy.p0.p0.i64(ptr nonnull align 1 %8, ptr nonnull align 1 %0, i64 %6, i1 false)
  %9 = add i64 %6, %4
  store i64 %9, ptr %3, align 8
  %10 = getelementptr inbounds nuw i8, ptr %7, i64 %9
  store i8 0, ptr %10, align 1
  ret void
}

declare void @llvm.lifetime.start.p0(ptr captures(none)) #4

declare i64 @strlen(ptr noundef captures(none)) local_unnamed_addr #5

declare void @llvm.memcpy.p0.p0.i64(ptr noalias writeonly captures(none), ptr noalias readonly captures(none), i64, i1 immarg) #6

declare void @llvm.lifetime.end.p0(ptr captures(none)) #4

define hidden void @fly_say_number(i64 noundef %0) local_unnamed_addr #7 {
  %2 = alloca [32 x i8], align 16
  call void @llvm.lifetime.start.p0(ptr nonnull %2) #28
  %3 = call i32 (ptr, i64, ptr, ...) @snprintf(ptr noundef nonnull dereferenceable(1) %2, i64 noundef 32, ptr noundef nonnull @.str, i64 noundef %0) #29
  call void @fly_say(ptr noundef nonnull %2) #30
  call void @llvm.lifetime.end.p0(ptr nonnull %2) #28
  ret void
}

declare noundef i32 @snprintf(ptr noalias noundef writeonly captures(none), i64 noundef, ptr noundef readonly captures(none), ...) local_unnamed_addr #8

define hidden void @fly_say_hex(i64 noundef %0) local_unnamed_addr #7 {
  %2 = alloca [32 x i8], align 16
  call void @llvm.lifetime.start.p0(ptr nonnull %2) #28
  %3 = call i32 (ptr, i64, ptr, ...) @snprintf(ptr noundef nonnull dereferenceable(1) %2, i64 noundef 32, ptr noundef nonnull @.str.1, i64 noundef %0) #29
  call void @fly_say(ptr noundef nonnull %2) #30
  call void @llvm.lifetime.end.p0(ptr nonnull %2) #28
  ret void
}

define hidden void @fly_say_float(double noundef %0) local_unnamed_addr #7 {
  %2 = alloca [40 x i8], align 16
  call void @llvm.lifetime.start.p0(ptr nonnull %2) #28
  br label %3

3:                                                ; preds = %11, %1
  %4 = phi i32 [ 1, %1 ], [ %12, %11 ]
  %5 = icmp eq i32 %4, 17
  br i1 %5, label %15, label %6

6:                                                ; preds = %3
  %7 = add nsw i32 %4, -1
  %8 = call i32 (ptr, i64, ptr, ...) @snprintf(ptr noundef nonnull dereferenceable(1) %2, i64 noundef 40, ptr noundef nonnull @.str.2, i32 noundef %7, double noundef %0) #29
  %9 = call double @strtod(ptr noundef nonnull captures(none) %2, ptr noundef null) #29
  %10 = fcmp oeq double %9, %0
  br i1 %10, label %13, label %11

11:                                               ; preds = %6
  %12 = add nuw nsw i32 %4, 1
  br label %3, !llvm.loop !2

13:                                               ; preds = %6
  %14 = add nsw i32 %4, -1
  br label %15

15:                                               ; preds = %3, %13
  %16 = phi i32 [ %14, %13 ], [ 16, %3 ]
  %17 = call i32 (ptr, i64, ptr, ...) @snprintf(ptr noundef nonnull dereferenceable(1) %2, i64 noundef 40, ptr noundef nonnull @.str.2, i32 noundef %16, double noundef %0) #29
  %18 = call ptr @strchr(ptr noundef nonnull dereferenceable(1) %2, i32 noundef 101) #27
  %19 = icmp eq ptr %18, null
  br i1 %19, label %31, label %20

20:                                               ; preds = %15
  %21 = getelementptr inbounds nuw i8, ptr %18, i64 1
  %22 = call i64 @strtol(ptr noundef nonnull captures(none) %21, ptr noundef null, i32 noundef 10) #29
  %23 = trunc i64 %22 to i32
  %24 = add i32 %23, 4
  %25 = icmp ult i32 %24, 20
  br i1 %25, label %26, label %31

26:                                               ; preds = %20
  %27 = icmp sgt i32 %16, %23
  %28 = sub nsw i32 %16, %23
  %29 = select i1 %27, i32 %28, i32 1
  %30 = call i32 (ptr, i64, ptr, ...) @snprintf(ptr noundef nonnull dereferenceable(1) %2, i64 noundef 40, ptr noundef nonnull @.str.3, i32 noundef %29, double noundef %0) #29
  br label %31

31:                                               ; preds = %15, %26, %20
  call void @fly_say(ptr noundef nonnull %2) #30
  call void @llvm.lifetime.end.p0(ptr nonnull %2) #28
  ret void
}

declare double @strtod(ptr noundef readonly, ptr noundef captures(none)) local_unnamed_addr #9

declare ptr @strchr(ptr noundef, i32 noundef) local_unnamed_addr #5

declare i64 @strtol(ptr noundef readonly, ptr noundef captures(none), i32 noundef) local_unnamed_addr #9

define hidden void @fly_say_array(ptr noundef readonly captures(none) %0, i64 noundef %1) local_unnamed_addr #7 {
  tail call void @fly_say(ptr noundef nonnull @.str.4) #30
  %3 = tail call i64 @llvm.smax.i64(i64 %1, i64 0)
  br label %4

4:                                                ; preds = %13, %2
  %5 = phi i64 [ 0, %2 ], [ %16, %13 ]
  %6 = icmp eq i64 %5, %3
  br i1 %6, label %7, label %10

7:                                                ; preds = %4
  %8 = icmp eq i64 %1, 1
  %9 = select i1 %8, ptr @.str.6, ptr @.str.7
  tail call void @fly_say(ptr noundef nonnull %9) #30
  ret void

10:                                               ; preds = %4
  %11 = icmp eq i64 %5, 0
  br i1 %11, label %13, label %12

12:                                               ; preds = %10
  tail call void @fly_say(ptr noundef nonnull @.str.5) #30
  br label %13

13:                                               ; preds = %12, %10
  %14 = getelementptr inbounds nuw i64, ptr %0, i64 %5
  %15 = load i64, ptr %14, align 8
  tail call void @fly_say_number(i64 noundef %15) #30
  %16 = add nuw i64 %5, 1
  br label %4, !llvm.loop !4
}

define hidden void @fly_say_triple(ptr noundef readonly captures(none) %0) local_unnamed_addr #7 {
  %2 = getelementptr inbounds nuw i8, ptr %0, i64 16
  %3 = load i64, ptr %2, align 8
  %4 = icmp eq i64 %3, 1
  br i1 %4, label %5, label %10

5:                                                ; preds = %1
  %6 = getelementptr inbounds nuw i8, ptr %0, i64 8
  %7 = load i64, ptr %6, align 8
  %8 = icmp eq i64 %7, 1
  %9 = select i1 %8, i64 1, i64 2
  br label %10

10:                                               ; preds = %1, %5
  %11 = phi i64 [ %9, %5 ], [ 3, %1 ]
  br label %12

12:                                               ; preds = %19, %10
  %13 = phi i64 [ %22, %19 ], [ 0, %10 ]
  %14 = icmp eq i64 %13, %11
  br i1 %14, label %15, label %16

15:                                               ; preds = %12
  ret void

16:                                               ; preds = %12
  %17 = icmp eq i64 %13, 0
  br i1 %17, label %19, label %18

18:                                               ; preds = %16
  tail call void @fly_say(ptr noundef nonnull @.str.8) #30
  br label %19

19:                                               ; preds = %18, %16
  %20 = getelementptr inbounds nuw i64, ptr %0, i64 %13
  %21 = load i64, ptr %20, align 8
  tail call void @fly_say_number(i64 noundef %21) #30
  %22 = add nuw nsw i64 %13, 1
  br label %12, !llvm.loop !5
}

define hidden void @fly_say_dtype(i32 noundef %0) local_unnamed_addr #7 {
  %2 = and i32 %0, 255
  %3 = lshr i32 %0, 8
  %4 = and i32 %3, 255
  %5 = lshr i32 %0, 16
  %6 = add nsw i32 %2, -10
  %7 = icmp ult i32 %6, 5
  br i1 %7, label %8, label %13

8:                                                ; preds = %1
  %9 = zext nneg i32 %2 to i64
  %10 = getelementptr ptr, ptr @fly_say_dtype.eights, i64 %9
  %11 = getelementptr i8, ptr %10, i64 -80
  %12 = load ptr, ptr %11, align 8
  tail call void @fly_say(ptr noundef %12) #30
  br label %24

13:                                               ; preds = %1
  %14 = icmp samesign ult i32 %2, 7
  br i1 %14, label %15, label %22

15:                                               ; preds = %13
  %16 = zext nneg i32 %2 to i64
  %17 = shl i64 %16, 2
  %18 = call ptr @llvm.load.relative.i64(ptr @fly_say_dtype.plain.rel, i64 %17)
  tail call void @fly_say(ptr noundef %18) #30
  %19 = icmp eq i32 %2, 6
  br i1 %19, label %24, label %20

20:                                               ; preds = %15
  %21 = zext nneg i32 %4 to i64
  tail call void @fly_say_number(i64 noundef %21) #30
  br label %24

22:                                               ; preds = %13
  tail call void @fly_say(ptr noundef nonnull @.str.21) #30
  %23 = zext nneg i32 %2 to i64
  tail call void @fly_say_number(i64 noundef %23) #30
  br label %24

24:                                               ; preds = %22, %20, %15, %8
  %25 = icmp eq i32 %5, 1
  br i1 %25, label %28, label %26

26:                                               ; preds = %24
  tail call void @fly_say(ptr noundef nonnull @.str.22) #30
  %27 = zext nneg i32 %5 to i64
  tail call void @fly_say_number(i64 noundef %27) #30
  br label %28

28:                                               ; preds = %26, %24
  ret void
}

define hidden void @fly_say_place(i64 %0) local_unnamed_addr #7 {
  %2 = trunc i64 %0 to i32
  %3 = icmp eq i32 %2, 1
  br i1 %3, label %4, label %5

4:                                                ; preds = %1
  tail call void @fly_say(ptr noundef nonnull @.str.23) #30
  br label %15

5:                                                ; preds = %1
  tail call void @fly_say(ptr noundef nonnull @.str.24) #30
  switch i32 %2, label %9 [
    i32 10, label %6
    i32 2, label %6
  ]

6:                                                ; preds = %5, %5
  %7 = icmp eq i32 %2, 2
  %8 = select i1 %7, ptr @.str.25, ptr @.str.26
  br label %12

9:                                                ; preds = %5
  tail call void @fly_say(ptr noundef nonnull @.str.27) #30
  %10 = shl i64 %0, 32
  %11 = ashr exact i64 %10, 32
  tail call void @fly_say_number(i64 noundef %11) #30
  br label %12

12:                                               ; preds = %9, %6
  %13 = phi ptr [ @.str.28, %9 ], [ %8, %6 ]
  tail call void @fly_say(ptr noundef nonnull %13) #30
  %14 = ashr i64 %0, 32
  tail call void @fly_say_number(i64 noundef %14) #30
  br label %15

15:                                               ; preds = %12, %4
  ret void
}

define hidden ptr @fly_strides(ptr noundef readonly captures(none) %0, ptr noundef writeonly captures(ret: address, provenance) %1) local_unnamed_addr #10 {
  %3 = getelementptr inbounds nuw i8, ptr %0, i64 32
  %4 = load ptr, ptr %3, align 8
  %5 = icmp eq ptr %4, null
  br i1 %5, label %6, label %24

6:                                                ; preds = %2
  %7 = getelementptr inbounds nuw i8, ptr %0, i64 16
  %8 = load i32, ptr %7, align 8
  %9 = getelementptr inbounds nuw i8, ptr %0, i64 24
  %10 = zext i32 %8 to i64
  br label %11

11:                                               ; preds = %16, %6
  %12 = phi i64 [ %17, %16 ], [ %10, %6 ]
  %13 = phi i64 [ %23, %16 ], [ 1, %6 ]
  %14 = trunc nuw i64 %12 to i32
  %15 = icmp sgt i32 %14, 0
  br i1 %15, label %16, label %24

16:                                               ; preds = %11
  %17 = add nsw i64 %12, -1
  %18 = getelementptr inbounds nuw i64, ptr %1, i64 %17
  store i64 %13, ptr %18, align 8
  %19 = load ptr, ptr %9, align 8
  %20 = getelementptr inbounds nuw i64, ptr %19, i64 %17
  %21 = load i64, ptr %20, align 8
  %22 = tail call i64 @llvm.smax.i64(i64 %21, i64 1)
  %23 = mul i64 %22, %13
  br label %11, !llvm.loop !6

24:                                               ; preds = %11, %2
  %25 = phi ptr [ %4, %2 ], [ %1, %11 ]
  ret ptr %25
}

define hidden noundef zeroext i1 @fly_apart(i64 noundef %0, ptr noundef readonly captures(none) %1, ptr noundef readonly captures(none) %2) local_unnamed_addr #11 {
  %4 = alloca [64 x i64], align 16
  %5 = alloca [64 x i64], align 16
  %6 = alloca [64 x i64], align 16
  call void @llvm.lifetime.start.p0(ptr nonnull %4) #28
  call void @llvm.lifetime.start.p0(ptr nonnull %5) #28
  %7 = icmp sgt i64 %0, 64
  br i1 %7, label %115, label %8

8:                                                ; preds = %3
  %9 = tail call i64 @llvm.smax.i64(i64 %0, i64 0)
  br label %10

10:                                               ; preds = %8, %45
  %11 = phi i64 [ %46, %45 ], [ 1, %8 ]
  %12 = phi i64 [ %47, %45 ], [ 1, %8 ]
  %13 = phi i64 [ %49, %45 ], [ 0, %8 ]
  %14 = phi i64 [ %48, %45 ], [ 0, %8 ]
  %15 = icmp eq i64 %13, %9
  br i1 %15, label %16, label %18

16:                                               ; preds = %10
  %17 = tail call i64 @llvm.smax.i64(i64 %14, i64 0)
  br label %50

18:                                               ; preds = %10
  %19 = getelementptr inbounds nuw i64, ptr %2, i64 %13
  %20 = load i64, ptr %19, align 8
  %21 = tail call i64 @llvm.abs.i64(i64 %20, i1 true)
  %22 = getelementptr inbounds nuw i64, ptr %1, i64 %13
  %23 = load i64, ptr %22, align 8
  switch i64 %23, label %24 [
    i64 0, label %115
    i64 1, label %45
  ]

24:                                               ; preds = %18, %32
  %25 = phi i64 [ %28, %32 ], [ %14, %18 ]
  %26 = icmp sgt i64 %25, 0
  br i1 %26, label %27, label %37

27:                                               ; preds = %24
  %28 = add nsw i64 %25, -1
  %29 = getelementptr inbounds nuw i64, ptr %5, i64 %28
  %30 = load i64, ptr %29, align 8
  %31 = icmp sgt i64 %30, %21
  br i1 %31, label %32, label %37

32:                                               ; preds = %27
  %33 = getelementptr inbounds nuw i64, ptr %5, i64 %25
  store i64 %30, ptr %33, align 8
  %34 = getelementptr inbounds nuw i64, ptr %4, i64 %28
  %35 = load i64, ptr %34, align 8
  %36 = getelementptr inbounds nuw i64, ptr %4, i64 %25
  store i64 %35, ptr %36, align 8
  br label %24, !llvm.loop !7

37:                                               ; preds = %24, %27
  %38 = getelementptr inbounds i64, ptr %5, i64 %25
  store i64 %21, ptr %38, align 8
  %39 = getelementptr inbounds i64, ptr %4, i64 %25
  store i64 %23, ptr %39, align 8
  %40 = add nsw i64 %14, 1
  %41 = mul i64 %23, %12
  %42 = add nsw i64 %23, -1
  %43 = mul nsw i64 %42, %21
  %44 = add nsw i64 %43, %11
  br label %45

45:                                               ; preds = %18, %37
  %46 = phi i64 [ %44, %37 ], [ %11, %18 ]
  %47 = phi i64 [ %41, %37 ], [ %12, %18 ]
  %48 = phi i64 [ %40, %37 ], [ %14, %18 ]
  %49 = add nuw i64 %13, 1
  br label %10, !llvm.loop !8

50:                                               ; preds = %16, %58
  %51 = phi i64 [ %63, %58 ], [ 1, %16 ]
  %52 = phi i64 [ %64, %58 ], [ 0, %16 ]
  %53 = icmp eq i64 %52, %17
  br i1 %53, label %65, label %54

54:                                               ; preds = %50
  %55 = getelementptr inbounds nuw i64, ptr %5, i64 %52
  %56 = load i64, ptr %55, align 8
  %57 = icmp slt i64 %56, %51
  br i1 %57, label %65, label %58

58:                                               ; preds = %54
  %59 = getelementptr inbounds nuw i64, ptr %4, i64 %52
  %60 = load i64, ptr %59, align 8
  %61 = add nsw i64 %60, -1
  %62 = mul nsw i64 %61, %56
  %63 = add nsw i64 %62, %51
  %64 = add nuw i64 %52, 1
  br label %50, !llvm.loop !9

65:                                               ; preds = %50, %54
  %66 = phi i64 [ %17, %50 ], [ %52, %54 ]
  %67 = icmp eq i64 %66, %14
  br i1 %67, label %115, label %68

68:                                               ; preds = %65
  %69 = icmp ugt i64 %12, %11
  br i1 %69, label %115, label %70

70:                                               ; preds = %68
  %71 = sdiv i64 %11, 8
  %72 = add nsw i64 %71, 1
  %73 = tail call noalias ptr @calloc(i64 noundef %72, i64 noundef 1) #31
  call void @llvm.lifetime.start.p0(ptr nonnull %6) #28
  call void @llvm.memset.p0.i64(ptr noundef nonnull align 16 dereferenceable(512) %6, i8 0, i64 512, i1 false)
  %74 = icmp eq ptr %73, null
  br i1 %74, label %113, label %75

75:                                               ; preds = %70, %109
  %76 = phi i64 [ %112, %109 ], [ 0, %70 ]
  %77 = ashr i64 %76, 3
  %78 = getelementptr inbounds i8, ptr %73, i64 %77
  %79 = load i8, ptr %78, align 1
  %80 = zext i8 %79 to i32
  %81 = trunc i64 %76 to i32
  %82 = and i32 %81, 7
  %83 = shl nuw nsw i32 1, %82
  %84 = and i32 %83, %80
  %85 = icmp eq i32 %84, 0
  br i1 %85, label %86, label %113

86:                                               ; preds = %75
  %87 = trunc nuw i32 %83 to i8
  %88 = or i8 %79, %87
  store i8 %88, ptr %78, align 1
  br label %89

89:                                               ; preds = %100, %86
  %90 = phi i64 [ %76, %86 ], [ %104, %100 ]
  %91 = phi i64 [ 0, %86 ], [ %105, %100 ]
  %92 = icmp eq i64 %91, %17
  br i1 %92, label %106, label %93

93:                                               ; preds = %89
  %94 = getelementptr inbounds nuw i64, ptr %6, i64 %91
  %95 = load i64, ptr %94, align 8
  %96 = add nsw i64 %95, 1
  store i64 %96, ptr %94, align 8
  %97 = getelementptr inbounds nuw i64, ptr %4, i64 %91
  %98 = load i64, ptr %97, align 8
  %99 = icmp eq i64 %96, %98
  br i1 %99, label %100, label %106

100:                                              ; preds = %93
  %101 = getelementptr inbounds nuw i64, ptr %5, i64 %91
  %102 = load i64, ptr %101, align 8
  %103 = mul nsw i64 %102, %95
  %104 = sub nsw i64 %90, %103
  store i64 0, ptr %94, align 8
  %105 = add nuw i64 %91, 1
  br label %89, !llvm.loop !10

106:                                              ; preds = %89, %93
  %107 = phi i64 [ %17, %89 ], [ %91, %93 ]
  %108 = icmp eq i64 %107, %14
  br i1 %108, label %113, label %109

109:                                              ; preds = %106
  %110 = getelementptr inbounds nuw i64, ptr %5, i64 %107
  %111 = load i64, ptr %110, align 8
  %112 = add nsw i64 %111, %90
  br label %75

113:                                              ; preds = %75, %106, %70
  %114 = phi i1 [ false, %70 ], [ %85, %106 ], [ %85, %75 ]
  tail call void @free(ptr noundef %73) #29
  call void @llvm.lifetime.end.p0(ptr nonnull %6) #28
  br label %115

115:                                              ; preds = %18, %113, %65, %68, %3
  %116 = phi i1 [ false, %68 ], [ false, %3 ], [ %114, %113 ], [ true, %65 ], [ true, %18 ]
  call void @llvm.lifetime.end.p0(ptr nonnull %5) #28
  call void @llvm.lifetime.end.p0(ptr nonnull %4) #28
  ret i1 %116
}

declare noalias noundef ptr @calloc(i64 noundef, i64 noundef) local_unnamed_addr #12

declare void @llvm.memset.p0.i64(ptr writeonly captures(none), i8, i64, i1 immarg) #13

declare void @free(ptr allocptr noundef captures(none)) local_unnamed_addr #14

define hidden zeroext i1 @fly_bfloat(float noundef %0, ptr noundef writeonly captures(none) initializes((0, 2)) %1) local_unnamed_addr #15 {
  %3 = bitcast float %0 to i32
  %4 = fcmp uno float %0, 0.000000e+00
  br i1 %4, label %5, label %9

5:                                                ; preds = %2
  %6 = lshr i32 %3, 16
  %7 = trunc nuw i32 %6 to i16
  %8 = or i16 %7, 64
  br label %21

9:                                                ; preds = %2
  %10 = add i32 %3, 32767
  %11 = lshr i32 %3, 16
  %12 = and i32 %11, 1
  %13 = add i32 %10, %12
  %14 = lshr i32 %13, 16
  %15 = trunc nuw i32 %14 to i16
  %16 = and i32 %13, 2147418112
  %17 = icmp ne i32 %16, 2139095040
  %18 = tail call float @llvm.fabs.f32(float %0)
  %19 = fcmp oeq float %18, 0x7FF0000000000000
  %20 = or i1 %19, %17
  br label %21

21:                                               ; preds = %9, %5
  %22 = phi i16 [ %8, %5 ], [ %15, %9 ]
  %23 = phi i1 [ true, %5 ], [ %20, %9 ]
  store i16 %22, ptr %1, align 2
  ret i1 %23
}

define hidden noundef zeroext i1 @fly_half(float noundef %0, ptr noundef writeonly captures(none) %1) local_unnamed_addr #15 {
  %3 = bitcast float %0 to i32
  %4 = lshr i32 %3, 16
  %5 = and i32 %4, 32768
  %6 = tail call float @llvm.fabs.f32(float %0)
  %7 = bitcast float %6 to i32
  %8 = icmp samesign ugt i32 %7, 2139095039
  br i1 %8, label %9, label %12

9:                                                ; preds = %2
  %10 = icmp eq i32 %7, 2139095040
  %11 = select i1 %10, i32 31744, i32 32256
  br label %43

12:                                               ; preds = %2
  %13 = icmp samesign ugt i32 %7, 1199566847
  br i1 %13, label %47, label %14

14:                                               ; preds = %12
  %15 = icmp samesign ult i32 %7, 947912704
  br i1 %15, label %16, label %37

16:                                               ; preds = %14
  %17 = lshr i32 %7, 23
  %18 = sub nuw nsw i32 126, %17
  %19 = and i32 %7, 8388607
  %20 = or disjoint i32 %19, 8388608
  %21 = icmp samesign ult i32 %7, 796917760
  %22 = lshr i32 %20, %18
  %23 = select i1 %21, i32 0, i32 %22
  %24 = add nsw i32 %17, -94
  %25 = shl i32 %20, %24
  %26 = select i1 %21, i32 0, i32 %25
  %27 = icmp ugt i32 %26, -2147483648
  br i1 %27, label %34, label %28

28:                                               ; preds = %16
  %29 = icmp eq i32 %26, -2147483648
  %30 = and i32 %23, 1
  %31 = icmp ne i32 %30, 0
  %32 = select i1 %29, i1 %31, i1 false
  %33 = zext i1 %32 to i32
  br label %34

34:                                               ; preds = %28, %16
  %35 = phi i32 [ 1, %16 ], [ %33, %28 ]
  %36 = add nuw nsw i32 %35, %23
  br label %43

37:                                               ; preds = %14
  %38 = lshr i32 %7, 13
  %39 = and i32 %38, 1
  %40 = add nuw nsw i32 %7, 134221823
  %41 = add nuw nsw i32 %40, %39
  %42 = lshr i32 %41, 13
  br label %43

43:                                               ; preds = %9, %34, %37
  %44 = phi i32 [ %42, %37 ], [ %36, %34 ], [ %11, %9 ]
  %45 = or i32 %44, %5
  %46 = trunc i32 %45 to i16
  store i16 %46, ptr %1, align 2
  br label %47

47:                                               ; preds = %43, %12
  %48 = phi i1 [ false, %12 ], [ true, %43 ]
  ret i1 %48
}

define hidden noundef ptr @fly_allocate(ptr noundef %0, i64 noundef %1, ptr noundef %2) local_unnamed_addr #16 {
  %4 = tail call noalias dereferenceable_or_null(88) ptr @calloc(i64 noundef 1, i64 noundef 88) #31
  %5 = tail call i64 @llvm.smax.i64(i64 %1, i64 1)
  %6 = icmp eq ptr %4, null
  br i1 %6, label %27, label %7

7:                                                ; preds = %3
  %8 = getelementptr inbounds nuw i8, ptr %0, i64 24
  %9 = load ptr, ptr %8, align 8
  %10 = icmp eq ptr %9, null
  br i1 %10, label %18, label %11

11:                                               ; preds = %7
  %12 = getelementptr inbounds nuw i8, ptr %0, i64 8
  %13 = load ptr, ptr %12, align 8
  %14 = tail call i32 @fly_device_allocate(ptr noundef nonnull %9, i64 noundef %5, ptr noundef %13, ptr noundef nonnull %4) #30
  %15 = getelementptr inbounds nuw i8, ptr %0, i64 16
  store i32 %14, ptr %15, align 8
  %16 = icmp eq i32 %14, 0
  br i1 %16, label %22, label %17

17:                                               ; preds = %11
  tail call void @fly_say(ptr noundef nonnull @.str.29) #30
  tail call void @fly_say_number(i64 noundef %1) #30
  tail call void @fly_say(ptr noundef nonnull @.str.30) #30
  tail call void @fly_say(ptr noundef %2) #30
  tail call void @free(ptr noundef nonnull %4) #29
  br label %48

18:                                               ; preds = %7
  %19 = add nuw i64 %5, 63
  %20 = and i64 %19, -64
  %21 = tail call noalias align 64 ptr @aligned_alloc(i64 noundef 64, i64 noundef %20) #32
  store ptr %21, ptr %4, align 8
  br label %24

22:                                               ; preds = %11
  %23 = load ptr, ptr %4, align 8
  br label %24

24:                                               ; preds = %22, %18
  %25 = phi ptr [ %23, %22 ], [ %21, %18 ]
  %26 = icmp eq ptr %25, null
  br i1 %26, label %27, label %29

27:                                               ; preds = %3, %24
  tail call void @fly_say(ptr noundef nonnull @.str.31) #30
  tail call void @fly_say(ptr noundef %2) #30
  tail call void @fly_say(ptr noundef nonnull @.str.29) #30
  tail call void @fly_say_number(i64 noundef %1) #30
  tail call void @fly_say(ptr noundef nonnull @.str.32) #30
  %28 = getelementptr inbounds nuw i8, ptr %0, i64 16
  store i32 3, ptr %28, align 8
  tail call void @free(ptr noundef %4) #29
  br label %48

29:                                               ; preds = %24
  %30 = getelementptr inbounds nuw i8, ptr %4, i64 8
  store i64 1, ptr %30, align 8
  %31 = getelementptr inbounds nuw i8, ptr %4, i64 16
  store ptr %0, ptr %31, align 8
  %32 = load ptr, ptr %8, align 8
  %33 = getelementptr inbounds nuw i8, ptr %4, i64 24
  store ptr %32, ptr %33, align 8
  %34 = getelementptr inbounds nuw i8, ptr %0, i64 8
  %35 = load ptr, ptr %34, align 8
  %36 = getelementptr inbounds nuw i8, ptr %4, i64 32
  store ptr %35, ptr %36, align 8
  %37 = getelementptr inbounds nuw i8, ptr %4, i64 40
  %38 = load i64, ptr %0, align 8
  store i64 %38, ptr %37, align 8
  %39 = getelementptr inbounds nuw i8, ptr %0, i64 40
  %40 = load ptr, ptr %39, align 8
  %41 = ptrtoint ptr %25 to i64
  %42 = getelementptr inbounds nuw i8, ptr %4, i64 48
  store ptr %40, ptr %42, align 8
  %43 = getelementptr inbounds nuw i8, ptr %4, i64 56
  store ptr %2, ptr %43, align 8
  %44 = getelementptr inbounds nuw i8, ptr %4, i64 64
  store i64 %41, ptr %44, align 8
  %45 = getelementptr inbounds nuw i8, ptr %4, i64 72
  store i64 %1, ptr %45, align 8
  %46 = getelementptr inbounds nuw i8, ptr %4, i64 80
  store i32 1, ptr %46, align 8
  %47 = getelementptr inbounds nuw i8, ptr %4, i64 84
  store i32 0, ptr %47, align 4
  store ptr %42, ptr %39, align 8
  br label %48

48:                                               ; preds = %29, %27, %17
  %49 = phi ptr [ null, %17 ], [ %4, %29 ], [ null, %27 ]
  ret ptr %49
}

define hidden range(i32 0, 5) i32 @fly_device_allocate(ptr noundef captures(none) %0, i64 noundef %1, ptr noundef %2, ptr noundef %3) local_unnamed_addr #16 {
  %5 = getelementptr inbounds nuw i8, ptr %0, i64 24
  %6 = load ptr, ptr %5, align 8
  %7 = getelementptr inbounds nuw i8, ptr %6, i64 304
  %8 = load ptr, ptr %7, align 8
  %9 = icmp eq ptr %8, null
  br i1 %9, label %22, label %10

10:                                               ; preds = %4
  %11 = getelementptr inbounds nuw i8, ptr %6, i64 320
  %12 = load ptr, ptr %11, align 8
  %13 = icmp eq ptr %12, null
  br i1 %13, label %22, label %14

14:                                               ; preds = %10
  %15 = getelementptr inbounds nuw i8, ptr %0, i64 8
  %16 = load atomic i32, ptr %15 monotonic, align 8
  %17 = icmp eq i32 %16, 0
  br i1 %17, label %18, label %22

18:                                               ; preds = %14
  %19 = tail call i32 %8(ptr noundef %3, i64 noundef %1, ptr noundef %2) #29
  switch i32 %19, label %20 [
    i32 801, label %22
    i32 0, label %30
  ]

20:                                               ; preds = %18
  %21 = tail call i32 @fly_driver_failed(ptr noundef nonnull %6, i32 noundef 12, i32 noundef %19) #30
  br label %30

22:                                               ; preds = %18, %4, %14, %10
  %23 = getelementptr inbounds nuw i8, ptr %0, i64 8
  store atomic i32 1, ptr %23 monotonic, align 8
  %24 = getelementptr inbounds nuw i8, ptr %6, i64 296
  %25 = load ptr, ptr %24, align 8
  %26 = tail call i32 %25(ptr noundef %3, i64 noundef %1) #29
  %27 = icmp eq i32 %26, 0
  br i1 %27, label %30, label %28

28:                                               ; preds = %22
  %29 = tail call i32 @fly_driver_failed(ptr noundef nonnull %6, i32 noundef 11, i32 noundef %26) #30
  br label %30

30:                                               ; preds = %18, %20, %28, %22
  %31 = phi i32 [ 0, %22 ], [ %29, %28 ], [ %21, %20 ], [ %19, %18 ]
  ret i32 %31
}

declare noalias noundef ptr @aligned_alloc(i64 allocalign noundef, i64 noundef) local_unnamed_addr #17

define hidden void @fly_hold(ptr noundef captures(address_is_null) %0) local_unnamed_addr #18 {
  %2 = icmp eq ptr %0, null
  br i1 %2, label %6, label %3

3:                                                ; preds = %1
  %4 = getelementptr inbounds nuw i8, ptr %0, i64 8
  %5 = atomicrmw add ptr %4, i64 1 monotonic, align 8
  br label %6

6:                                                ; preds = %3, %1
  ret void
}

define hidden void @fly_drop(ptr noundef captures(address) %0) local_unnamed_addr #16 {
  %2 = icmp eq ptr %0, null
  br i1 %2, label %23, label %3

3:                                                ; preds = %1
  %4 = getelementptr inbounds nuw i8, ptr %0, i64 8
  %5 = atomicrmw sub ptr %4, i64 1 acq_rel, align 8
  %6 = icmp eq i64 %5, 1
  br i1 %6, label %7, label %23

7:                                                ; preds = %3
  %8 = getelementptr inbounds nuw i8, ptr %0, i64 16
  %9 = load ptr, ptr %8, align 8
  %10 = icmp ne ptr %9, null
  br i1 %10, label %11, label %12

11:                                               ; preds = %7
  tail call fastcc void @forget(ptr noundef %0) #30
  br label %12

12:                                               ; preds = %11, %7
  %13 = getelementptr inbounds nuw i8, ptr %0, i64 24
  %14 = load ptr, ptr %13, align 8
  %15 = icmp eq ptr %14, null
  %16 = load ptr, ptr %0, align 8
  br i1 %15, label %21, label %17

17:                                               ; preds = %12
  %18 = getelementptr inbounds nuw i8, ptr %0, i64 32
  %19 = load ptr, ptr %18, align 8
  %20 = zext i1 %10 to i32
  tail call void @fly_device_free(ptr noundef nonnull %14, ptr noundef %16, ptr noundef %19, i32 noundef %20) #30
  br label %22

21:                                               ; preds = %12
  tail call void @free(ptr noundef %16) #29
  br label %22

22:                                               ; preds = %21, %17
  tail call void @free(ptr noundef nonnull %0) #29
  br label %23

23:                                               ; preds = %1, %3, %22
  ret void
}

define internal fastcc void @forget(ptr noundef nonnull captures(address) %0) unnamed_addr #19 {
  %2 = getelementptr inbounds nuw i8, ptr %0, i64 16
  %3 = load ptr, ptr %2, align 8
  %4 = getelementptr inbounds nuw i8, ptr %3, i64 40
  %5 = getelementptr inbounds nuw i8, ptr %0, i64 48
  br label %6

6:                                                ; preds = %10, %1
  %7 = phi ptr [ %4, %1 ], [ %8, %10 ]
  %8 = load ptr, ptr %7, align 8
  %9 = icmp eq ptr %8, null
  br i1 %9, label %14, label %10

10:                                               ; preds = %6
  %11 = icmp eq ptr %8, %5
  br i1 %11, label %12, label %6, !llvm.loop !11

12:                                               ; preds = %10
  %13 = load ptr, ptr %5, align 8
  store ptr %13, ptr %7, align 8
  br label %14

14:                                               ; preds = %6, %12
  store ptr null, ptr %2, align 8
  ret void
}

define hidden void @fly_device_free(ptr noundef readonly captures(none) %0, ptr noundef %1, ptr noundef %2, i32 noundef %3) local_unnamed_addr #16 {
  %5 = alloca i64, align 8
  %6 = getelementptr inbounds nuw i8, ptr %0, i64 24
  %7 = load ptr, ptr %6, align 8
  call void @llvm.lifetime.start.p0(ptr nonnull %5) #28
  %8 = call i32 @fly_device_enter(ptr noundef %0, ptr noundef nonnull %5) #30
  %9 = icmp eq i32 %8, 0
  br i1 %9, label %10, label %26

10:                                               ; preds = %4
  %11 = icmp eq i32 %3, 0
  br i1 %11, label %20, label %12

12:                                               ; preds = %10
  %13 = getelementptr inbounds nuw i8, ptr %0, i64 8
  %14 = load atomic i32, ptr %13 monotonic, align 8
  %15 = icmp eq i32 %14, 0
  br i1 %15, label %16, label %20

16:                                               ; preds = %12
  %17 = getelementptr inbounds nuw i8, ptr %7, i64 320
  %18 = load ptr, ptr %17, align 8
  %19 = tail call i32 %18(ptr noundef %1, ptr noundef %2) #29
  br label %24

20:                                               ; preds = %12, %10
  %21 = getelementptr inbounds nuw i8, ptr %7, i64 312
  %22 = load ptr, ptr %21, align 8
  %23 = tail call i32 %22(ptr noundef %1) #29
  br label %24

24:                                               ; preds = %20, %16
  %25 = load i64, ptr %5, align 8
  tail call void @fly_device_leave(ptr noundef nonnull %0, i64 noundef %25) #30
  br label %26

26:                                               ; preds = %4, %24
  call void @llvm.lifetime.end.p0(ptr nonnull %5) #28
  ret void
}

define hidden range(i32 0, 4) i32 @fly_result(ptr noundef captures(none) %0, ptr noundef %1, ptr noundef %2, i32 noundef %3, i32 noundef %4, ptr noundef readonly captures(none) %5, ptr noundef readonly captures(none) %6, ptr noundef writeonly captures(none) %7) local_unnamed_addr #20 {
  %9 = sext i32 %4 to i64
  %10 = shl nsw i64 %9, 3
  %11 = shl nsw i64 %9, 4
  %12 = add nsw i64 %11, 72
  %13 = tail call noalias ptr @calloc(i64 noundef 1, i64 noundef %12) #31
  %14 = icmp eq ptr %13, null
  br i1 %14, label %15, label %17

15:                                               ; preds = %8
  tail call void @fly_say(ptr noundef nonnull @.str.33) #30
  %16 = getelementptr inbounds nuw i8, ptr %0, i64 16
  store i32 3, ptr %16, align 8
  br label %39

17:                                               ; preds = %8
  %18 = icmp eq ptr %1, null
  br i1 %18, label %27, label %19

19:                                               ; preds = %17
  %20 = getelementptr inbounds nuw i8, ptr %1, i64 16
  %21 = load ptr, ptr %20, align 8
  %22 = icmp eq ptr %21, null
  br i1 %22, label %24, label %23

23:                                               ; preds = %19
  tail call fastcc void @forget(ptr noundef %1) #30
  br label %24

24:                                               ; preds = %23, %19
  %25 = getelementptr inbounds nuw i8, ptr %1, i64 8
  %26 = atomicrmw add ptr %25, i64 1 monotonic, align 8
  br label %27

27:                                               ; preds = %17, %24
  %28 = getelementptr inbounds nuw i8, ptr %13, i64 72
  tail call void @llvm.memcpy.p0.p0.i64(ptr nonnull align 8 %28, ptr align 8 %5, i64 %10, i1 false)
  %29 = getelementptr inbounds i64, ptr %28, i64 %9
  tail call void @llvm.memcpy.p0.p0.i64(ptr nonnull align 8 %29, ptr align 8 %6, i64 %10, i1 false)
  store ptr %2, ptr %13, align 8
  %30 = getelementptr inbounds nuw i8, ptr %13, i64 8
  %31 = load i64, ptr %0, align 8
  store i64 %31, ptr %30, align 8
  %32 = getelementptr inbounds nuw i8, ptr %13, i64 16
  store i32 %4, ptr %32, align 8
  %33 = getelementptr inbounds nuw i8, ptr %13, i64 20
  store i32 %3, ptr %33, align 4
  %34 = getelementptr inbounds nuw i8, ptr %13, i64 24
  store ptr %28, ptr %34, align 8
  %35 = getelementptr inbounds nuw i8, ptr %13, i64 32
  store ptr %29, ptr %35, align 8
  %36 = getelementptr inbounds nuw i8, ptr %13, i64 48
  store ptr %13, ptr %36, align 8
  %37 = getelementptr inbounds nuw i8, ptr %13, i64 56
  store ptr @delete, ptr %37, align 8
  %38 = getelementptr inbounds nuw i8, ptr %13, i64 64
  store ptr %1, ptr %38, align 8
  store ptr %13, ptr %7, align 8
  br label %39

39:                                               ; preds = %27, %15
  %40 = phi i32 [ 0, %27 ], [ 3, %15 ]
  ret i32 %40
}

define internal void @delete(ptr noundef readonly captures(none) %0) #16 {
  %2 = getelementptr inbounds nuw i8, ptr %0, i64 48
  %3 = load ptr, ptr %2, align 8
  %4 = getelementptr inbounds nuw i8, ptr %3, i64 64
  %5 = load ptr, ptr %4, align 8
  tail call void @fly_drop(ptr noundef %5) #30
  tail call void @free(ptr noundef %3) #29
  ret void
}

define hidden range(i32 3, 5) i32 @fly_driver_failed(ptr noundef readonly captures(address) %0, i32 noundef %1, i32 noundef %2) local_unnamed_addr #16 {
  %4 = alloca ptr, align 8
  %5 = getelementptr inbounds nuw i8, ptr %0, i64 48
  %6 = sext i32 %1 to i64
  %7 = getelementptr inbounds ptr, ptr %5, i64 %6
  %8 = load ptr, ptr %7, align 8
  tail call void @fly_say(ptr noundef %8) #30
  tail call void @fly_say(ptr noundef nonnull @.str.34) #30
  %9 = icmp eq ptr %0, @hip
  %10 = getelementptr inbounds nuw i8, ptr %0, i64 208
  br label %11

11:                                               ; preds = %41, %3
  %12 = phi i64 [ %43, %41 ], [ 15, %3 ]
  %13 = phi i8 [ %42, %41 ], [ 0, %3 ]
  %14 = icmp eq i64 %12, 17
  br i1 %14, label %15, label %17

15:                                               ; preds = %11
  %16 = trunc nuw i8 %13 to i1
  br i1 %16, label %46, label %44

17:                                               ; preds = %11
  call void @llvm.lifetime.start.p0(ptr nonnull %4) #28
  store ptr null, ptr %4, align 8
  br i1 %9, label %18, label %22

18:                                               ; preds = %17
  %19 = getelementptr inbounds nuw ptr, ptr getelementptr inbounds nuw (i8, ptr @hip, i64 208), i64 %12
  %20 = load ptr, ptr %19, align 8
  %21 = call ptr %20(i32 noundef %2) #29
  store ptr %21, ptr %4, align 8
  br label %29

22:                                               ; preds = %17
  %23 = getelementptr inbounds nuw ptr, ptr %10, i64 %12
  %24 = load ptr, ptr %23, align 8
  %25 = call i32 %24(i32 noundef %2, ptr noundef nonnull %4) #29
  %26 = icmp eq i32 %25, 0
  br i1 %26, label %27, label %41

27:                                               ; preds = %22
  %28 = load ptr, ptr %4, align 8
  br label %29

29:                                               ; preds = %27, %18
  %30 = phi ptr [ %28, %27 ], [ %21, %18 ]
  %31 = icmp eq ptr %30, null
  br i1 %31, label %41, label %32

32:                                               ; preds = %29
  %33 = load i8, ptr %30, align 1
  %34 = icmp eq i8 %33, 0
  br i1 %34, label %41, label %35

35:                                               ; preds = %32
  %36 = trunc nuw i8 %13 to i1
  br i1 %36, label %37, label %39

37:                                               ; preds = %35
  call void @fly_say(ptr noundef nonnull @.str.29) #30
  %38 = load ptr, ptr %4, align 8
  br label %39

39:                                               ; preds = %37, %35
  %40 = phi ptr [ %38, %37 ], [ %30, %35 ]
  call void @fly_say(ptr noundef %40) #30
  br label %41

41:                                               ; preds = %22, %39, %32, %29
  %42 = phi i8 [ 1, %39 ], [ %13, %32 ], [ %13, %29 ], [ %13, %22 ]
  call void @llvm.lifetime.end.p0(ptr nonnull %4) #28
  %43 = add nuw nsw i64 %12, 1
  br label %11, !llvm.loop !12

44:                                               ; preds = %15
  call void @fly_say(ptr noundef nonnull @.str.35) #30
  %45 = sext i32 %2 to i64
  call void @fly_say_number(i64 noundef %45) #30
  br label %46

46:                                               ; preds = %44, %15
  br label %47

47:                                               ; preds = %46, %50
  %48 = phi i64 [ %54, %50 ], [ 0, %46 ]
  %49 = icmp eq i64 %48, 16
  br i1 %49, label %58, label %50

50:                                               ; preds = %47
  %51 = getelementptr inbounds nuw i32, ptr @missing.known, i64 %48
  %52 = load i32, ptr %51, align 4
  %53 = icmp eq i32 %52, %2
  %54 = add i64 %48, 1
  br i1 %53, label %55, label %47, !llvm.loop !13

55:                                               ; preds = %50
  %56 = icmp ult i64 %48, 16
  %57 = select i1 %56, i32 3, i32 4
  br label %58

58:                                               ; preds = %47, %55
  %59 = phi i32 [ %57, %55 ], [ 4, %47 ]
  ret i32 %59
}

define hidden ptr @fly_driver(i32 noundef %0, ptr noundef captures(none) initializes((0, 4)) %1) local_unnamed_addr #16 {
  %3 = icmp eq i32 %0, 2
  %4 = select i1 %3, ptr @cuda, ptr @hip
  store i32 0, ptr %1, align 4
  %5 = select i1 %3, ptr getelementptr inbounds nuw (i8, ptr @cuda, i64 200), ptr getelementptr inbounds nuw (i8, ptr @hip, i64 200)
  %6 = load atomic i32, ptr %5 acquire, align 8
  %7 = icmp eq i32 %6, 0
  br i1 %7, label %8, label %83

8:                                                ; preds = %2
  %9 = tail call i32 @pthread_mutex_lock(ptr noundef nonnull @guard) #29
  %10 = load i32, ptr %5, align 8
  %11 = icmp eq i32 %10, 0
  br i1 %11, label %12, label %78

12:                                               ; preds = %8, %33
  %13 = phi i32 [ %34, %33 ], [ 0, %8 ]
  %14 = phi ptr [ %27, %33 ], [ null, %8 ]
  %15 = icmp samesign ult i32 %13, 2
  %16 = icmp eq ptr %14, null
  %17 = select i1 %15, i1 %16, i1 false
  br i1 %17, label %18, label %21

18:                                               ; preds = %12
  %19 = icmp eq i32 %13, 0
  %20 = select i1 %19, i32 5, i32 1
  br label %25

21:                                               ; preds = %12
  br i1 %16, label %37, label %22

22:                                               ; preds = %21
  %23 = select i1 %3, ptr getelementptr inbounds nuw (i8, ptr @cuda, i64 48), ptr getelementptr inbounds nuw (i8, ptr @hip, i64 48)
  %24 = select i1 %3, ptr getelementptr inbounds nuw (i8, ptr @cuda, i64 208), ptr getelementptr inbounds nuw (i8, ptr @hip, i64 208)
  br label %45

25:                                               ; preds = %35, %18
  %26 = phi ptr [ %28, %35 ], [ %4, %18 ]
  %27 = phi ptr [ %36, %35 ], [ null, %18 ]
  %28 = getelementptr inbounds nuw i8, ptr %26, i64 8
  %29 = load ptr, ptr %28, align 8
  %30 = icmp ne ptr %29, null
  %31 = icmp eq ptr %27, null
  %32 = select i1 %30, i1 %31, i1 false
  br i1 %32, label %35, label %33

33:                                               ; preds = %25
  %34 = add nuw nsw i32 %13, 1
  br label %12, !llvm.loop !14

35:                                               ; preds = %25
  %36 = tail call ptr @dlopen(ptr noundef nonnull %29, i32 noundef %20) #29
  br label %25, !llvm.loop !15

37:                                               ; preds = %21
  %38 = load ptr, ptr getelementptr inbounds nuw (i8, ptr @cuda, i64 8), align 8
  %39 = load ptr, ptr getelementptr inbounds nuw (i8, ptr @hip, i64 8), align 8
  %40 = select i1 %3, ptr %38, ptr %39
  tail call void @fly_say(ptr noundef %40) #30
  tail call void @fly_say(ptr noundef nonnull @.str.84) #30
  %41 = load ptr, ptr %4, align 8
  tail call void @fly_say(ptr noundef %41) #30
  tail call void @fly_say(ptr noundef nonnull @.str.85) #30
  %42 = tail call ptr @dlerror() #29
  %43 = icmp eq ptr %42, null
  br i1 %43, label %75, label %44

44:                                               ; preds = %37
  tail call void @fly_say(ptr noundef nonnull @.str.29) #30
  tail call void @fly_say(ptr noundef nonnull %42) #30
  br label %75

45:                                               ; preds = %67, %22
  %46 = phi i64 [ 0, %22 ], [ %68, %67 ]
  %47 = icmp eq i64 %46, 17
  br i1 %47, label %69, label %48

48:                                               ; preds = %45
  %49 = getelementptr inbounds nuw ptr, ptr %23, i64 %46
  %50 = load ptr, ptr %49, align 8
  %51 = icmp eq ptr %50, null
  br i1 %51, label %67, label %52

52:                                               ; preds = %48
  %53 = tail call ptr @dlsym(ptr noundef nonnull %14, ptr noundef nonnull %50) #29
  %54 = getelementptr inbounds nuw ptr, ptr %24, i64 %46
  store ptr %53, ptr %54, align 8
  %55 = icmp eq ptr %53, null
  br i1 %55, label %56, label %67

56:                                               ; preds = %52
  %57 = load ptr, ptr getelementptr inbounds nuw (i8, ptr @cuda, i64 184), align 8
  %58 = load ptr, ptr getelementptr inbounds nuw (i8, ptr @hip, i64 184), align 8
  %59 = select i1 %3, ptr %57, ptr %58
  %60 = getelementptr inbounds nuw i8, ptr %59, i64 %46
  %61 = load i8, ptr %60, align 1
  %62 = icmp eq i8 %61, 63
  br i1 %62, label %67, label %63

63:                                               ; preds = %56
  %64 = getelementptr inbounds nuw ptr, ptr %23, i64 %46
  tail call void @fly_say(ptr noundef nonnull @.str.86) #30
  %65 = load ptr, ptr %4, align 8
  tail call void @fly_say(ptr noundef %65) #30
  tail call void @fly_say(ptr noundef nonnull @.str.87) #30
  %66 = load ptr, ptr %64, align 8
  tail call void @fly_say(ptr noundef %66) #30
  br label %75

67:                                               ; preds = %56, %52, %48
  %68 = add nuw nsw i64 %46, 1
  br label %45, !llvm.loop !16

69:                                               ; preds = %45
  %70 = load ptr, ptr %24, align 8
  %71 = tail call i32 %70(i32 noundef 0) #29
  %72 = icmp eq i32 %71, 0
  br i1 %72, label %77, label %73

73:                                               ; preds = %69
  %74 = tail call i32 @fly_driver_failed(ptr noundef nonnull %4, i32 noundef 0, i32 noundef %71) #30
  br label %75

75:                                               ; preds = %37, %63, %44, %73
  %76 = phi i32 [ %74, %73 ], [ 3, %44 ], [ 3, %63 ], [ 3, %37 ]
  store i32 %76, ptr %1, align 4
  br label %78

77:                                               ; preds = %69
  store i32 0, ptr %1, align 4
  store atomic i32 1, ptr %5 release, align 8
  br label %78

78:                                               ; preds = %75, %77, %8
  %79 = tail call i32 @pthread_mutex_unlock(ptr noundef nonnull @guard) #29
  %80 = load i32, ptr %1, align 4
  %81 = icmp eq i32 %80, 0
  %82 = select i1 %81, ptr %4, ptr null
  br label %83

83:                                               ; preds = %2, %78
  %84 = phi ptr [ %82, %78 ], [ %4, %2 ]
  ret ptr %84
}

declare i32 @pthread_mutex_lock(ptr noundef) local_unnamed_addr #21

declare i32 @pthread_mutex_unlock(ptr noundef) local_unnamed_addr #21

define hidden ptr @fly_device(i64 %0, ptr noundef writeonly captures(none) %1, ptr noundef captures(none) initializes((0, 4)) %2) local_unnamed_addr #16 {
  %4 = alloca [2048 x i8], align 16
  %5 = alloca [2 x i32], align 8
  %6 = alloca [2 x ptr], align 16
  %7 = alloca i32, align 4
  %8 = alloca i32, align 4
  %9 = alloca i32, align 4
  %10 = alloca i32, align 4
  %11 = alloca [256 x i8], align 16
  %12 = alloca i32, align 4
  %13 = alloca i64, align 8
  %14 = trunc i64 %0 to i32
  %15 = lshr i64 %0, 32
  %16 = tail call ptr @fly_driver(i32 noundef %14, ptr noundef %2) #30
  %17 = icmp eq ptr %16, null
  br i1 %17, label %356, label %18

18:                                               ; preds = %3
  %19 = trunc nuw i64 %15 to i32
  %20 = icmp slt i64 %0, 0
  %21 = icmp sgt i32 %19, 63
  %22 = select i1 %20, i1 true, i1 %21
  br i1 %22, label %23, label %26

23:                                               ; preds = %18
  tail call void @fly_say(ptr noundef nonnull @.str.36) #30
  %24 = load ptr, ptr %16, align 8
  tail call void @fly_say(ptr noundef %24) #30
  tail call void @fly_say(ptr noundef nonnull @.str.37) #30
  %25 = ashr i64 %0, 32
  tail call void @fly_say_number(i64 noundef %25) #30
  store i32 3, ptr %2, align 4
  br label %356

26:                                               ; preds = %18
  %27 = icmp eq i32 %14, 2
  %28 = select i1 %27, ptr @cuda_devices, ptr @hip_devices
  %29 = getelementptr inbounds nuw %struct.Device, ptr %28, i64 %15
  %30 = load atomic i32, ptr %29 acquire, align 8
  %31 = icmp eq i32 %30, 0
  br i1 %31, label %32, label %350

32:                                               ; preds = %26
  %33 = tail call i32 @pthread_mutex_lock(ptr noundef nonnull @loading) #29
  %34 = load i32, ptr %29, align 8
  %35 = icmp eq i32 %34, 0
  br i1 %35, label %36, label %348

36:                                               ; preds = %32
  %37 = getelementptr inbounds nuw i8, ptr %29, i64 24
  store ptr %16, ptr %37, align 8
  %38 = getelementptr inbounds nuw i8, ptr %29, i64 12
  store i64 %0, ptr %38, align 4
  %39 = getelementptr inbounds nuw i8, ptr %29, i64 16
  call void @llvm.lifetime.start.p0(ptr nonnull %11) #28
  call void @llvm.memset.p0.i64(ptr noundef nonnull align 16 dereferenceable(256) %11, i8 0, i64 256, i1 false)
  call void @llvm.lifetime.start.p0(ptr nonnull %12) #28
  store i32 0, ptr %12, align 4
  %40 = getelementptr inbounds nuw i8, ptr %16, i64 216
  %41 = load ptr, ptr %40, align 8
  %42 = call i32 %41(ptr noundef nonnull %12) #29
  %43 = icmp eq i32 %42, 0
  br i1 %43, label %46, label %44

44:                                               ; preds = %36
  %45 = call i32 @fly_driver_failed(ptr noundef nonnull %16, i32 noundef 1, i32 noundef %42) #30
  br label %341

46:                                               ; preds = %36
  %47 = load i32, ptr %39, align 8
  %48 = icmp sgt i32 %47, -1
  %49 = load i32, ptr %12, align 4
  %50 = icmp slt i32 %47, %49
  %51 = select i1 %48, i1 %50, i1 false
  br i1 %51, label %58, label %52

52:                                               ; preds = %46
  call void @fly_say(ptr noundef nonnull @.str.36) #30
  %53 = load ptr, ptr %16, align 8
  call void @fly_say(ptr noundef %53) #30
  call void @fly_say(ptr noundef nonnull @.str.37) #30
  %54 = load i32, ptr %39, align 8
  %55 = sext i32 %54 to i64
  call void @fly_say_number(i64 noundef %55) #30
  call void @fly_say(ptr noundef nonnull @.str.88) #30
  %56 = load i32, ptr %12, align 4
  %57 = sext i32 %56 to i64
  call void @fly_say_number(i64 noundef %57) #30
  br label %341

58:                                               ; preds = %46
  %59 = load ptr, ptr %37, align 8
  %60 = load i32, ptr %38, align 4
  call void @llvm.lifetime.start.p0(ptr nonnull %9) #28
  store i32 0, ptr %9, align 4
  call void @llvm.lifetime.start.p0(ptr nonnull %10) #28
  store i32 0, ptr %10, align 4
  %61 = icmp eq i32 %60, 2
  br i1 %61, label %62, label %94

62:                                               ; preds = %58
  %63 = getelementptr inbounds nuw i8, ptr %59, i64 224
  %64 = load ptr, ptr %63, align 8
  %65 = call i32 %64(ptr noundef nonnull %9, i32 noundef 75, i32 noundef %47) #29
  %66 = icmp eq i32 %65, 0
  br i1 %66, label %67, label %91

67:                                               ; preds = %62
  %68 = load ptr, ptr %63, align 8
  %69 = call i32 %68(ptr noundef nonnull %10, i32 noundef 76, i32 noundef %47) #29
  %70 = icmp eq i32 %69, 0
  br i1 %70, label %71, label %91

71:                                               ; preds = %67
  call void @llvm.memcpy.p0.p0.i64(ptr noundef nonnull align 16 dereferenceable(3) %11, ptr noundef nonnull align 1 dereferenceable(3) @.str.89, i64 3, i1 false)
  %72 = getelementptr inbounds nuw i8, ptr %11, i64 3
  %73 = load i32, ptr %9, align 4
  %74 = icmp sgt i32 %73, 9
  br i1 %74, label %75, label %80

75:                                               ; preds = %71
  %76 = udiv i32 %73, 10
  %77 = trunc i32 %76 to i8
  %78 = add i8 %77, 48
  %79 = getelementptr inbounds nuw i8, ptr %11, i64 4
  store i8 %78, ptr %72, align 1
  br label %80

80:                                               ; preds = %75, %71
  %81 = phi ptr [ %79, %75 ], [ %72, %71 ]
  %82 = srem i32 %73, 10
  %83 = trunc nsw i32 %82 to i8
  %84 = add nsw i8 %83, 48
  %85 = getelementptr inbounds nuw i8, ptr %81, i64 1
  store i8 %84, ptr %81, align 1
  %86 = load i32, ptr %10, align 4
  %87 = srem i32 %86, 10
  %88 = trunc nsw i32 %87 to i8
  %89 = add nsw i8 %88, 48
  %90 = getelementptr inbounds nuw i8, ptr %81, i64 2
  store i8 %89, ptr %85, align 1
  store i8 0, ptr %90, align 1
  br label %105

91:                                               ; preds = %67, %62
  %92 = phi i32 [ %69, %67 ], [ %65, %62 ]
  %93 = call fastcc i32 @failed(ptr noundef nonnull %29, i32 noundef 2, i32 noundef %92) #30
  br label %218

94:                                               ; preds = %58
  %95 = call noalias dereferenceable_or_null(8192) ptr @calloc(i64 noundef 1, i64 noundef 8192) #31
  %96 = icmp eq ptr %95, null
  br i1 %96, label %218, label %97

97:                                               ; preds = %94
  %98 = getelementptr inbounds nuw i8, ptr %59, i64 224
  %99 = load ptr, ptr %98, align 8
  %100 = call i32 %99(ptr noundef nonnull %95, i32 noundef %47) #29
  %101 = getelementptr inbounds nuw i8, ptr %95, i64 1160
  call void @llvm.memcpy.p0.p0.i64(ptr noundef nonnull align 16 dereferenceable(255) %11, ptr noundef nonnull align 1 dereferenceable(255) %101, i64 255, i1 false)
  call void @free(ptr noundef nonnull %95) #29
  %102 = icmp eq i32 %100, 0
  br i1 %102, label %105, label %103

103:                                              ; preds = %97
  %104 = call fastcc i32 @failed(ptr noundef nonnull %29, i32 noundef 2, i32 noundef %100) #30
  br label %218

105:                                              ; preds = %97, %80
  %106 = phi i32 [ 0, %97 ], [ %86, %80 ]
  %107 = phi i32 [ 0, %97 ], [ %73, %80 ]
  %108 = getelementptr inbounds nuw i8, ptr %29, i64 4
  store i32 -1, ptr %108, align 4
  %109 = load i32, ptr @fly_target_count, align 4
  %110 = mul nsw i32 %107, 10
  %111 = add nsw i32 %110, %106
  %112 = call i32 @llvm.smax.i32(i32 %109, i32 0)
  %113 = zext nneg i32 %112 to i64
  br label %114

114:                                              ; preds = %212, %105
  %115 = phi i64 [ %214, %212 ], [ 0, %105 ]
  %116 = phi i32 [ %213, %212 ], [ 0, %105 ]
  %117 = icmp eq i64 %115, %113
  br i1 %117, label %118, label %120

118:                                              ; preds = %114
  %119 = icmp eq i32 %116, 0
  br i1 %119, label %215, label %220

120:                                              ; preds = %114
  %121 = getelementptr inbounds nuw %struct.Target, ptr @fly_targets, i64 %115
  %122 = getelementptr inbounds nuw i8, ptr %121, i64 16
  %123 = load i32, ptr %122, align 8
  %124 = icmp eq i32 %123, %60
  br i1 %124, label %125, label %212

125:                                              ; preds = %120
  br i1 %61, label %126, label %164

126:                                              ; preds = %125
  %127 = getelementptr inbounds nuw i8, ptr %121, i64 24
  %128 = load i32, ptr %127, align 8
  %129 = icmp eq i32 %128, %107
  %130 = mul nsw i32 %128, 10
  %131 = getelementptr inbounds nuw i8, ptr %121, i64 28
  %132 = load i32, ptr %131, align 4
  %133 = add nsw i32 %130, %132
  %134 = getelementptr inbounds nuw i8, ptr %121, i64 32
  %135 = load i32, ptr %134, align 8
  %136 = icmp eq i32 %135, 97
  br i1 %136, label %137, label %144

137:                                              ; preds = %126
  %138 = icmp eq i32 %133, %111
  br i1 %138, label %139, label %207

139:                                              ; preds = %137
  %140 = getelementptr inbounds nuw i8, ptr %121, i64 20
  %141 = load i32, ptr %140, align 4
  %142 = icmp eq i32 %141, 0
  %143 = select i1 %142, i32 4000, i32 3000
  br label %207

144:                                              ; preds = %126
  %145 = icmp sgt i32 %133, %111
  br i1 %145, label %207, label %146

146:                                              ; preds = %144
  br i1 %129, label %147, label %152

147:                                              ; preds = %146
  %148 = getelementptr inbounds nuw i8, ptr %121, i64 20
  %149 = load i32, ptr %148, align 4
  %150 = icmp eq i32 %149, 0
  %151 = select i1 %150, i32 2000, i32 1000
  br label %158

152:                                              ; preds = %146
  %153 = icmp eq i32 %135, 102
  br i1 %153, label %207, label %154

154:                                              ; preds = %152
  %155 = getelementptr inbounds nuw i8, ptr %121, i64 20
  %156 = load i32, ptr %155, align 4
  %157 = icmp eq i32 %156, 0
  br i1 %157, label %207, label %158

158:                                              ; preds = %154, %147
  %159 = phi i32 [ %151, %147 ], [ 1000, %154 ]
  %160 = icmp eq i32 %135, 102
  %161 = zext i1 %160 to i32
  %162 = add i32 %133, %161
  %163 = add i32 %162, %159
  br label %207

164:                                              ; preds = %125
  %165 = load ptr, ptr %121, align 8
  %166 = call i64 @strlen(ptr noundef nonnull dereferenceable(1) %165) #27
  %167 = call i32 @strncmp(ptr noundef nonnull readonly %11, ptr noundef nonnull %165, i64 noundef %166) #27
  %168 = icmp eq i32 %167, 0
  br i1 %168, label %169, label %207

169:                                              ; preds = %164
  %170 = getelementptr inbounds nuw i8, ptr %11, i64 %166
  %171 = load i8, ptr %170, align 1
  switch i8 %171, label %207 [
    i8 0, label %172
    i8 58, label %172
  ]

172:                                              ; preds = %169, %169
  %173 = getelementptr inbounds nuw i8, ptr %121, i64 8
  %174 = load ptr, ptr %173, align 8
  %175 = call ptr @strchr(ptr noundef nonnull dereferenceable(1) %174, i32 noundef 58) #27
  br label %177

176:                                              ; preds = %199, %199
  br label %177

177:                                              ; preds = %176, %172
  %178 = phi ptr [ %175, %172 ], [ %182, %176 ]
  %179 = icmp eq ptr %178, null
  br i1 %179, label %204, label %180

180:                                              ; preds = %177
  %181 = getelementptr inbounds nuw i8, ptr %178, i64 1
  %182 = call ptr @strchr(ptr noundef nonnull dereferenceable(1) %181, i32 noundef 58) #27
  %183 = icmp eq ptr %182, null
  br i1 %183, label %188, label %184

184:                                              ; preds = %180
  %185 = ptrtoint ptr %182 to i64
  %186 = ptrtoint ptr %178 to i64
  %187 = sub i64 %185, %186
  br label %190

188:                                              ; preds = %180
  %189 = call i64 @strlen(ptr noundef nonnull dereferenceable(1) %178) #27
  br label %190

190:                                              ; preds = %188, %184
  %191 = phi i64 [ %187, %184 ], [ %189, %188 ]
  br label %192

192:                                              ; preds = %202, %190
  %193 = phi ptr [ %11, %190 ], [ %203, %202 ]
  %194 = call ptr @strchr(ptr noundef nonnull dereferenceable(1) %193, i32 noundef 58) #27
  %195 = icmp eq ptr %194, null
  br i1 %195, label %207, label %196

196:                                              ; preds = %192
  %197 = call i32 @strncmp(ptr noundef nonnull %194, ptr noundef nonnull %178, i64 noundef %191) #27
  %198 = icmp eq i32 %197, 0
  br i1 %198, label %199, label %202

199:                                              ; preds = %196
  %200 = getelementptr inbounds nuw i8, ptr %194, i64 %191
  %201 = load i8, ptr %200, align 1
  switch i8 %201, label %202 [
    i8 0, label %176
    i8 58, label %176
  ], !llvm.loop !17

202:                                              ; preds = %199, %196
  %203 = getelementptr inbounds nuw i8, ptr %194, i64 1
  br label %192, !llvm.loop !18

204:                                              ; preds = %177
  %205 = icmp eq ptr %175, null
  %206 = select i1 %205, i32 1, i32 2
  br label %207

207:                                              ; preds = %192, %204, %169, %164, %158, %154, %152, %144, %139, %137
  %208 = phi i32 [ 0, %144 ], [ %163, %158 ], [ 0, %137 ], [ %143, %139 ], [ 0, %154 ], [ 0, %152 ], [ 0, %164 ], [ 0, %169 ], [ %206, %204 ], [ 0, %192 ]
  %209 = icmp sgt i32 %208, %116
  br i1 %209, label %210, label %212

210:                                              ; preds = %207
  %211 = trunc nuw nsw i64 %115 to i32
  store i32 %211, ptr %108, align 4
  br label %212

212:                                              ; preds = %210, %207, %120
  %213 = phi i32 [ %116, %120 ], [ %208, %210 ], [ %116, %207 ]
  %214 = add nuw nsw i64 %115, 1
  br label %114, !llvm.loop !19

215:                                              ; preds = %118
  call void @fly_say(ptr noundef nonnull @.str.90) #30
  call void @fly_say(ptr noundef nonnull %11) #30
  call void @fly_say(ptr noundef nonnull @.str.91) #30
  %216 = select i1 %61, ptr @.str.25, ptr @.str.26
  call void @fly_say(ptr noundef nonnull %216) #30
  %217 = zext nneg i32 %47 to i64
  call void @fly_say_number(i64 noundef %217) #30
  call void @fly_say(ptr noundef nonnull @.str.40) #30
  call void @fly_say(ptr noundef nonnull @fly_target_names) #30
  br label %218

218:                                              ; preds = %215, %103, %94, %91
  %219 = phi i32 [ 3, %94 ], [ %104, %103 ], [ %93, %91 ], [ 3, %215 ]
  call void @llvm.lifetime.end.p0(ptr nonnull %10) #28
  call void @llvm.lifetime.end.p0(ptr nonnull %9) #28
  br label %341

220:                                              ; preds = %118
  call void @llvm.lifetime.end.p0(ptr nonnull %10) #28
  call void @llvm.lifetime.end.p0(ptr nonnull %9) #28
  %221 = load i32, ptr %38, align 4
  %222 = icmp eq i32 %221, 2
  br i1 %222, label %223, label %235

223:                                              ; preds = %220
  %224 = getelementptr inbounds nuw i8, ptr %29, i64 32
  %225 = load ptr, ptr %224, align 8
  %226 = icmp eq ptr %225, null
  br i1 %226, label %227, label %235

227:                                              ; preds = %223
  %228 = getelementptr inbounds nuw i8, ptr %16, i64 232
  %229 = load ptr, ptr %228, align 8
  %230 = load i32, ptr %39, align 8
  %231 = call i32 %229(ptr noundef nonnull %224, i32 noundef %230) #29
  %232 = icmp eq i32 %231, 0
  br i1 %232, label %235, label %233

233:                                              ; preds = %227
  %234 = call fastcc i32 @failed(ptr noundef nonnull %29, i32 noundef 3, i32 noundef %231) #30
  br label %341

235:                                              ; preds = %227, %223, %220
  call void @llvm.lifetime.start.p0(ptr nonnull %13) #28
  %236 = call i32 @fly_device_enter(ptr noundef nonnull %29, ptr noundef nonnull %13) #30
  %237 = icmp eq i32 %236, 0
  br i1 %237, label %239, label %238

238:                                              ; preds = %235
  call void @llvm.lifetime.end.p0(ptr nonnull %13) #28
  call void @llvm.lifetime.end.p0(ptr nonnull %12) #28
  call void @llvm.lifetime.end.p0(ptr nonnull %11) #28
  store i32 %236, ptr %2, align 4
  br label %348

239:                                              ; preds = %235
  %240 = load ptr, ptr %37, align 8
  %241 = load i32, ptr %108, align 4
  %242 = sext i32 %241 to i64
  %243 = getelementptr inbounds %struct.Target, ptr @fly_targets, i64 %242
  %244 = load i32, ptr %38, align 4
  %245 = icmp eq i32 %244, 2
  br i1 %245, label %246, label %264

246:                                              ; preds = %239
  call void @llvm.lifetime.start.p0(ptr nonnull %4) #28
  call void @llvm.memset.p0.i64(ptr noundef nonnull align 16 dereferenceable(2048) %4, i8 0, i64 2048, i1 false)
  call void @llvm.lifetime.start.p0(ptr nonnull %5) #28
  store i64 25769803781, ptr %5, align 8
  call void @llvm.lifetime.start.p0(ptr nonnull %6) #28
  store ptr %4, ptr %6, align 16
  %247 = getelementptr inbounds nuw i8, ptr %6, i64 8
  store ptr inttoptr (i64 2047 to ptr), ptr %247, align 8
  %248 = getelementptr inbounds nuw i8, ptr %240, i64 256
  %249 = load ptr, ptr %248, align 8
  %250 = getelementptr inbounds nuw i8, ptr %29, i64 40
  %251 = getelementptr inbounds nuw i8, ptr %243, i64 40
  %252 = load ptr, ptr %251, align 8
  %253 = call i32 %249(ptr noundef nonnull %250, ptr noundef %252, i32 noundef 2, ptr noundef nonnull %5, ptr noundef nonnull %6) #29
  %254 = icmp eq i32 %253, 0
  br i1 %254, label %263, label %255

255:                                              ; preds = %246
  %256 = call fastcc i32 @failed(ptr noundef nonnull %29, i32 noundef 6, i32 noundef %253) #30
  %257 = load i8, ptr %4, align 16
  %258 = icmp eq i8 %257, 0
  br i1 %258, label %262, label %259

259:                                              ; preds = %255
  call void @fly_say(ptr noundef nonnull @.str.29) #30
  %260 = call i64 @strcspn(ptr noundef nonnull %4, ptr noundef nonnull @.str.92) #27
  %261 = getelementptr inbounds nuw i8, ptr %4, i64 %260
  store i8 0, ptr %261, align 1
  call void @fly_say(ptr noundef nonnull %4) #30
  br label %262

262:                                              ; preds = %259, %255
  call void @llvm.lifetime.end.p0(ptr nonnull %6) #28
  call void @llvm.lifetime.end.p0(ptr nonnull %5) #28
  call void @llvm.lifetime.end.p0(ptr nonnull %4) #28
  br label %343

263:                                              ; preds = %246
  call void @llvm.lifetime.end.p0(ptr nonnull %6) #28
  call void @llvm.lifetime.end.p0(ptr nonnull %5) #28
  call void @llvm.lifetime.end.p0(ptr nonnull %4) #28
  br label %274

264:                                              ; preds = %239
  %265 = getelementptr inbounds nuw i8, ptr %240, i64 256
  %266 = load ptr, ptr %265, align 8
  %267 = getelementptr inbounds nuw i8, ptr %29, i64 40
  %268 = getelementptr inbounds nuw i8, ptr %243, i64 40
  %269 = load ptr, ptr %268, align 8
  %270 = call i32 %266(ptr noundef nonnull %267, ptr noundef %269) #29
  %271 = icmp eq i32 %270, 0
  br i1 %271, label %274, label %272

272:                                              ; preds = %264
  %273 = call fastcc i32 @failed(ptr noundef nonnull %29, i32 noundef 6, i32 noundef %270) #30
  br label %343

274:                                              ; preds = %264, %263
  %275 = getelementptr inbounds nuw i8, ptr %243, i64 36
  %276 = load i32, ptr %275, align 4
  %277 = sext i32 %276 to i64
  %278 = add nsw i64 %277, 1
  %279 = call noalias ptr @calloc(i64 noundef %278, i64 noundef 8) #31
  %280 = getelementptr inbounds nuw i8, ptr %29, i64 48
  store ptr %279, ptr %280, align 8
  %281 = icmp eq ptr %279, null
  br i1 %281, label %343, label %282

282:                                              ; preds = %274
  %283 = getelementptr inbounds nuw i8, ptr %240, i64 264
  %284 = getelementptr inbounds nuw i8, ptr %29, i64 40
  %285 = getelementptr inbounds nuw i8, ptr %243, i64 48
  %286 = getelementptr inbounds nuw i8, ptr %240, i64 224
  %287 = getelementptr inbounds nuw i8, ptr %240, i64 272
  %288 = getelementptr inbounds nuw i8, ptr %240, i64 280
  %289 = call i32 @llvm.smax.i32(i32 %276, i32 0)
  %290 = zext nneg i32 %289 to i64
  br label %291

291:                                              ; preds = %339, %282
  %292 = phi i64 [ 0, %282 ], [ %340, %339 ]
  %293 = icmp eq i64 %292, %290
  br i1 %293, label %343, label %294

294:                                              ; preds = %291
  %295 = load ptr, ptr %280, align 8
  %296 = getelementptr inbounds nuw ptr, ptr %295, i64 %292
  call void @llvm.lifetime.start.p0(ptr nonnull %7) #28
  store i32 0, ptr %7, align 4
  call void @llvm.lifetime.start.p0(ptr nonnull %8) #28
  store i32 0, ptr %8, align 4
  %297 = load ptr, ptr %283, align 8
  %298 = load ptr, ptr %284, align 8
  %299 = load ptr, ptr %285, align 8
  %300 = getelementptr inbounds nuw ptr, ptr %299, i64 %292
  %301 = load ptr, ptr %300, align 8
  %302 = call i32 %297(ptr noundef %296, ptr noundef %298, ptr noundef %301) #29
  %303 = icmp eq i32 %302, 0
  br i1 %303, label %304, label %333

304:                                              ; preds = %294
  %305 = load i32, ptr %38, align 4
  %306 = icmp eq i32 %305, 2
  br i1 %306, label %307, label %339

307:                                              ; preds = %304
  %308 = load ptr, ptr %286, align 8
  %309 = load i32, ptr %39, align 8
  %310 = call i32 %308(ptr noundef nonnull %7, i32 noundef 97, i32 noundef %309) #29
  %311 = icmp eq i32 %310, 0
  br i1 %311, label %312, label %316

312:                                              ; preds = %307
  %313 = load ptr, ptr %287, align 8
  %314 = load ptr, ptr %296, align 8
  %315 = call i32 %313(ptr noundef nonnull %8, i32 noundef 1, ptr noundef %314) #29
  br label %316

316:                                              ; preds = %312, %307
  %317 = phi i32 [ %310, %307 ], [ %315, %312 ]
  %318 = phi i32 [ 2, %307 ], [ 8, %312 ]
  %319 = icmp eq i32 %317, 0
  %320 = load i32, ptr %7, align 4
  %321 = icmp sgt i32 %320, 49152
  %322 = select i1 %319, i1 %321, i1 false
  br i1 %322, label %323, label %329

323:                                              ; preds = %316
  %324 = load ptr, ptr %288, align 8
  %325 = load ptr, ptr %296, align 8
  %326 = load i32, ptr %8, align 4
  %327 = sub nsw i32 %320, %326
  %328 = call i32 %324(ptr noundef %325, i32 noundef 8, i32 noundef %327) #29
  br label %329

329:                                              ; preds = %323, %316
  %330 = phi i32 [ %317, %316 ], [ %328, %323 ]
  %331 = phi i32 [ %318, %316 ], [ 9, %323 ]
  %332 = icmp eq i32 %330, 0
  br i1 %332, label %339, label %333

333:                                              ; preds = %329, %294
  %334 = phi i32 [ %331, %329 ], [ 7, %294 ]
  %335 = phi i32 [ %330, %329 ], [ %302, %294 ]
  %336 = getelementptr inbounds nuw ptr, ptr %299, i64 %292
  call void @fly_say(ptr noundef nonnull @.str.38) #30
  %337 = load ptr, ptr %336, align 8
  call void @fly_say(ptr noundef %337) #30
  call void @fly_say(ptr noundef nonnull @.str.29) #30
  %338 = call fastcc i32 @failed(ptr noundef nonnull %29, i32 noundef %334, i32 noundef %335) #30
  call void @llvm.lifetime.end.p0(ptr nonnull %8) #28
  call void @llvm.lifetime.end.p0(ptr nonnull %7) #28
  br label %343

339:                                              ; preds = %329, %304
  call void @llvm.lifetime.end.p0(ptr nonnull %8) #28
  call void @llvm.lifetime.end.p0(ptr nonnull %7) #28
  %340 = add nuw nsw i64 %292, 1
  br label %291, !llvm.loop !20

341:                                              ; preds = %44, %52, %233, %218
  %342 = phi i32 [ %219, %218 ], [ %234, %233 ], [ 3, %52 ], [ %45, %44 ]
  call void @llvm.lifetime.end.p0(ptr nonnull %12) #28
  call void @llvm.lifetime.end.p0(ptr nonnull %11) #28
  store i32 %342, ptr %2, align 4
  br label %348

343:                                              ; preds = %291, %262, %272, %274, %333
  %344 = phi i32 [ 3, %274 ], [ %256, %262 ], [ %273, %272 ], [ %338, %333 ], [ 0, %291 ]
  %345 = load i64, ptr %13, align 8
  call void @fly_device_leave(ptr noundef nonnull %29, i64 noundef %345) #30
  call void @llvm.lifetime.end.p0(ptr nonnull %13) #28
  call void @llvm.lifetime.end.p0(ptr nonnull %12) #28
  call void @llvm.lifetime.end.p0(ptr nonnull %11) #28
  store i32 %344, ptr %2, align 4
  %346 = icmp eq i32 %344, 0
  br i1 %346, label %347, label %348

347:                                              ; preds = %343
  store atomic i32 1, ptr %29 release, align 8
  br label %348

348:                                              ; preds = %238, %341, %343, %347, %32
  %349 = call i32 @pthread_mutex_unlock(ptr noundef nonnull @loading) #29
  br label %350

350:                                              ; preds = %348, %26
  %351 = getelementptr inbounds nuw i8, ptr %29, i64 4
  %352 = load i32, ptr %351, align 4
  store i32 %352, ptr %1, align 4
  %353 = load i32, ptr %2, align 4
  %354 = icmp eq i32 %353, 0
  %355 = select i1 %354, ptr %29, ptr null
  br label %356

356:                                              ; preds = %3, %350, %23
  %357 = phi ptr [ null, %23 ], [ %355, %350 ], [ null, %3 ]
  ret ptr %357
}

define hidden range(i32 0, 5) i32 @fly_device_enter(ptr noundef readonly captures(none) %0, ptr noundef writeonly captures(none) initializes((0, 8)) %1) local_unnamed_addr #16 {
  %3 = alloca ptr, align 8
  %4 = alloca i32, align 4
  %5 = getelementptr inbounds nuw i8, ptr %0, i64 24
  %6 = load ptr, ptr %5, align 8
  %7 = getelementptr inbounds nuw i8, ptr %0, i64 12
  %8 = load i32, ptr %7, align 4
  %9 = icmp eq i32 %8, 2
  %10 = getelementptr inbounds nuw i8, ptr %6, i64 240
  br i1 %9, label %11, label %31

11:                                               ; preds = %2
  call void @llvm.lifetime.start.p0(ptr nonnull %3) #28
  store ptr null, ptr %3, align 8
  %12 = load ptr, ptr %10, align 8
  %13 = call i32 %12(ptr noundef nonnull %3) #29
  %14 = load ptr, ptr %3, align 8
  %15 = ptrtoint ptr %14 to i64
  store i64 %15, ptr %1, align 8
  %16 = getelementptr inbounds nuw i8, ptr %0, i64 32
  %17 = load ptr, ptr %16, align 8
  %18 = icmp ne i32 %13, 0
  %19 = icmp eq ptr %14, %17
  %20 = select i1 %18, i1 true, i1 %19
  br i1 %20, label %30, label %21

21:                                               ; preds = %11
  %22 = getelementptr inbounds nuw i8, ptr %6, i64 248
  %23 = load ptr, ptr %22, align 8
  %24 = call i32 %23(ptr noundef %17) #29
  %25 = icmp eq i32 %24, 0
  br i1 %25, label %28, label %26

26:                                               ; preds = %21
  %27 = call fastcc i32 @failed(ptr noundef nonnull %0, i32 noundef 5, i32 noundef %24) #30
  br label %28

28:                                               ; preds = %26, %21
  %29 = phi i32 [ %27, %26 ], [ 0, %21 ]
  call void @llvm.lifetime.end.p0(ptr nonnull %3) #28
  br label %56

30:                                               ; preds = %11
  call void @llvm.lifetime.end.p0(ptr nonnull %3) #28
  br label %51

31:                                               ; preds = %2
  call void @llvm.lifetime.start.p0(ptr nonnull %4) #28
  store i32 0, ptr %4, align 4
  %32 = load ptr, ptr %10, align 8
  %33 = call i32 %32(ptr noundef nonnull %4) #29
  %34 = load i32, ptr %4, align 4
  %35 = sext i32 %34 to i64
  store i64 %35, ptr %1, align 8
  %36 = icmp eq i32 %33, 0
  br i1 %36, label %37, label %48

37:                                               ; preds = %31
  %38 = getelementptr inbounds nuw i8, ptr %0, i64 16
  %39 = load i32, ptr %38, align 4
  %40 = icmp eq i32 %34, %39
  br i1 %40, label %48, label %41

41:                                               ; preds = %37
  %42 = getelementptr inbounds nuw i8, ptr %6, i64 248
  %43 = load ptr, ptr %42, align 8
  %44 = call i32 %43(i32 noundef %39) #29
  %45 = icmp eq i32 %44, 0
  br i1 %45, label %49, label %46

46:                                               ; preds = %41
  %47 = call fastcc i32 @failed(ptr noundef nonnull %0, i32 noundef 5, i32 noundef %44) #30
  br label %49

48:                                               ; preds = %37, %31
  call void @llvm.lifetime.end.p0(ptr nonnull %4) #28
  br label %51

49:                                               ; preds = %46, %41
  %50 = phi i32 [ 0, %41 ], [ %47, %46 ]
  call void @llvm.lifetime.end.p0(ptr nonnull %4) #28
  br label %56

51:                                               ; preds = %48, %30
  %52 = phi i32 [ %13, %30 ], [ %33, %48 ]
  %53 = icmp eq i32 %52, 0
  br i1 %53, label %56, label %54

54:                                               ; preds = %51
  %55 = call fastcc i32 @failed(ptr noundef nonnull %0, i32 noundef 4, i32 noundef %52) #30
  br label %56

56:                                               ; preds = %49, %28, %54, %51
  %57 = phi i32 [ %50, %49 ], [ %29, %28 ], [ %55, %54 ], [ 0, %51 ]
  ret i32 %57
}

define internal fastcc range(i32 3, 5) i32 @failed(ptr noundef readonly captures(none) %0, i32 noundef range(i32 2, 10) %1, i32 noundef range(i32 1, 0) %2) unnamed_addr #16 {
  %4 = getelementptr inbounds nuw i8, ptr %0, i64 12
  %5 = load i64, ptr %4, align 4
  tail call void @fly_say_place(i64 %5) #30
  tail call void @fly_say(ptr noundef nonnull @.str.29) #30
  %6 = getelementptr inbounds nuw i8, ptr %0, i64 24
  %7 = load ptr, ptr %6, align 8
  %8 = tail call i32 @fly_driver_failed(ptr noundef %7, i32 noundef %1, i32 noundef %2) #30
  ret i32 %8
}

define hidden void @fly_device_leave(ptr noundef readonly captures(none) %0, i64 noundef %1) local_unnamed_addr #16 {
  %3 = getelementptr inbounds nuw i8, ptr %0, i64 12
  %4 = load i32, ptr %3, align 4
  %5 = icmp eq i32 %4, 2
  br i1 %5, label %6, label %18

6:                                                ; preds = %2
  %7 = getelementptr inbounds nuw i8, ptr %0, i64 32
  %8 = load ptr, ptr %7, align 8
  %9 = ptrtoint ptr %8 to i64
  %10 = icmp eq i64 %1, %9
  br i1 %10, label %30, label %11

11:                                               ; preds = %6
  %12 = getelementptr inbounds nuw i8, ptr %0, i64 24
  %13 = load ptr, ptr %12, align 8
  %14 = getelementptr inbounds nuw i8, ptr %13, i64 248
  %15 = load ptr, ptr %14, align 8
  %16 = inttoptr i64 %1 to ptr
  %17 = tail call i32 %15(ptr noundef %16) #29
  br label %30

18:                                               ; preds = %2
  %19 = getelementptr inbounds nuw i8, ptr %0, i64 16
  %20 = load i32, ptr %19, align 4
  %21 = sext i32 %20 to i64
  %22 = icmp eq i64 %1, %21
  br i1 %22, label %30, label %23

23:                                               ; preds = %18
  %24 = getelementptr inbounds nuw i8, ptr %0, i64 24
  %25 = load ptr, ptr %24, align 8
  %26 = getelementptr inbounds nuw i8, ptr %25, i64 248
  %27 = load ptr, ptr %26, align 8
  %28 = trunc i64 %1 to i32
  %29 = tail call i32 %27(i32 noundef %28) #29
  br label %30

30:                                               ; preds = %18, %23, %6, %11
  ret void
}

define hidden range(i32 0, 5) i32 @fly_device_launch(ptr noundef readonly captures(none) %0, i32 noundef %1, ptr noundef readonly captures(none) %2, i32 noundef %3, ptr noundef %4, ptr noundef %5, i64 noundef %6) local_unnamed_addr #16 {
  %8 = alloca i64, align 8
  %9 = alloca [5 x ptr], align 16
  %10 = getelementptr inbounds nuw i8, ptr %0, i64 24
  %11 = load ptr, ptr %10, align 8
  call void @llvm.lifetime.start.p0(ptr nonnull %8) #28
  store i64 %6, ptr %8, align 8
  call void @llvm.lifetime.start.p0(ptr nonnull %9) #28
  store ptr inttoptr (i64 1 to ptr), ptr %9, align 16
  %12 = getelementptr inbounds nuw i8, ptr %9, i64 8
  store ptr %5, ptr %12, align 8
  %13 = getelementptr inbounds nuw i8, ptr %9, i64 16
  store ptr inttoptr (i64 2 to ptr), ptr %13, align 16
  %14 = getelementptr inbounds nuw i8, ptr %9, i64 24
  store ptr %8, ptr %14, align 8
  %15 = getelementptr inbounds nuw i8, ptr %9, i64 32
  %16 = getelementptr inbounds nuw i8, ptr %11, i64 192
  %17 = load i64, ptr %16, align 8
  %18 = inttoptr i64 %17 to ptr
  store ptr %18, ptr %15, align 16
  %19 = getelementptr inbounds nuw i8, ptr %11, i64 288
  %20 = load ptr, ptr %19, align 8
  %21 = getelementptr inbounds nuw i8, ptr %0, i64 48
  %22 = load ptr, ptr %21, align 8
  %23 = sext i32 %1 to i64
  %24 = getelementptr inbounds ptr, ptr %22, i64 %23
  %25 = load ptr, ptr %24, align 8
  %26 = load i32, ptr %2, align 4
  %27 = getelementptr inbounds nuw i8, ptr %2, i64 4
  %28 = load i32, ptr %27, align 4
  %29 = getelementptr inbounds nuw i8, ptr %2, i64 8
  %30 = load i32, ptr %29, align 4
  %31 = getelementptr inbounds nuw i8, ptr %2, i64 12
  %32 = load i32, ptr %31, align 4
  %33 = getelementptr inbounds nuw i8, ptr %2, i64 16
  %34 = load i32, ptr %33, align 4
  %35 = getelementptr inbounds nuw i8, ptr %2, i64 20
  %36 = load i32, ptr %35, align 4
  %37 = call i32 %20(ptr noundef %25, i32 noundef %26, i32 noundef %28, i32 noundef %30, i32 noundef %32, i32 noundef %34, i32 noundef %36, i32 noundef %3, ptr noundef %4, ptr noundef null, ptr noundef nonnull %9) #29
  %38 = icmp eq i32 %37, 0
  br i1 %38, label %49, label %39

39:                                               ; preds = %7
  call void @fly_say(ptr noundef nonnull @.str.38) #30
  %40 = getelementptr inbounds nuw i8, ptr %0, i64 4
  %41 = load i32, ptr %40, align 4
  %42 = sext i32 %41 to i64
  %43 = getelementptr inbounds %struct.Target, ptr @fly_targets, i64 %42
  %44 = getelementptr inbounds nuw i8, ptr %43, i64 48
  %45 = load ptr, ptr %44, align 8
  %46 = getelementptr inbounds ptr, ptr %45, i64 %23
  %47 = load ptr, ptr %46, align 8
  call void @fly_say(ptr noundef %47) #30
  call void @fly_say(ptr noundef nonnull @.str.29) #30
  %48 = call i32 @fly_driver_failed(ptr noundef nonnull %11, i32 noundef 10, i32 noundef %37) #30
  br label %49

49:                                               ; preds = %7, %39
  %50 = phi i32 [ %48, %39 ], [ 0, %7 ]
  call void @llvm.lifetime.end.p0(ptr nonnull %9) #28
  call void @llvm.lifetime.end.p0(ptr nonnull %8) #28
  ret i32 %50
}

define hidden i32 @fly_enter(ptr noundef captures(none) initializes((0, 48)) %0, ptr noundef readonly captures(none) %1, ptr noundef %2) local_unnamed_addr #16 {
  tail call void @llvm.memset.p0.i64(ptr noundef nonnull align 8 dereferenceable(48) %0, i8 0, i64 48, i1 false)
  %4 = getelementptr inbounds nuw i8, ptr %1, i64 8
  %5 = load i64, ptr %4, align 8
  store i64 %5, ptr %0, align 8
  %6 = getelementptr inbounds nuw i8, ptr %0, i64 8
  store ptr %2, ptr %6, align 8
  %7 = trunc i64 %5 to i32
  %8 = load i32, ptr @fly_target_count, align 4
  %9 = getelementptr inbounds nuw i8, ptr %0, i64 20
  %10 = tail call i32 @llvm.smax.i32(i32 %8, i32 0)
  %11 = zext nneg i32 %10 to i64
  br label %12

12:                                               ; preds = %26, %3
  %13 = phi i32 [ %27, %26 ], [ 0, %3 ]
  %14 = phi i64 [ %29, %26 ], [ 0, %3 ]
  %15 = phi i32 [ %28, %26 ], [ 0, %3 ]
  %16 = icmp eq i64 %14, %11
  br i1 %16, label %17, label %19

17:                                               ; preds = %12
  %18 = icmp eq i32 %15, 0
  br i1 %18, label %30, label %32

19:                                               ; preds = %12
  %20 = getelementptr inbounds nuw %struct.Target, ptr @fly_targets, i64 %14
  %21 = getelementptr inbounds nuw i8, ptr %20, i64 16
  %22 = load i32, ptr %21, align 8
  %23 = icmp eq i32 %22, %7
  br i1 %23, label %24, label %26

24:                                               ; preds = %19
  %25 = trunc nuw nsw i64 %14 to i32
  store i32 %25, ptr %9, align 4
  br label %26

26:                                               ; preds = %19, %24
  %27 = phi i32 [ %25, %24 ], [ %13, %19 ]
  %28 = phi i32 [ 1, %24 ], [ %15, %19 ]
  %29 = add nuw nsw i64 %14, 1
  br label %12, !llvm.loop !21

30:                                               ; preds = %17
  tail call void @fly_say(ptr noundef nonnull @.str.39) #30
  %31 = load i64, ptr %0, align 8
  tail call void @fly_say_place(i64 %31) #30
  tail call void @fly_say(ptr noundef nonnull @.str.40) #30
  tail call void @fly_say(ptr noundef nonnull @fly_target_names) #30
  br label %51

32:                                               ; preds = %17
  %33 = icmp eq i32 %7, 1
  br i1 %33, label %51, label %34

34:                                               ; preds = %32
  %35 = getelementptr inbounds nuw i8, ptr %0, i64 16
  %36 = tail call ptr @fly_device(i64 %5, ptr noundef nonnull %9, ptr noundef nonnull %35) #30
  %37 = getelementptr inbounds nuw i8, ptr %0, i64 24
  store ptr %36, ptr %37, align 8
  %38 = icmp eq ptr %36, null
  br i1 %38, label %42, label %39

39:                                               ; preds = %34
  %40 = getelementptr inbounds nuw i8, ptr %0, i64 32
  %41 = tail call i32 @fly_device_enter(ptr noundef nonnull %36, ptr noundef nonnull %40) #30
  store i32 %41, ptr %35, align 8
  br label %44

42:                                               ; preds = %34
  %43 = load i32, ptr %35, align 8
  br label %44

44:                                               ; preds = %42, %39
  %45 = phi i32 [ %43, %42 ], [ %41, %39 ]
  %46 = icmp eq i32 %45, 0
  br i1 %46, label %49, label %47

47:                                               ; preds = %44
  %48 = sub nsw i32 0, %45
  br label %51

49:                                               ; preds = %44
  %50 = load i32, ptr %9, align 4
  br label %51

51:                                               ; preds = %32, %47, %49, %30
  %52 = phi i32 [ %50, %49 ], [ -3, %30 ], [ %48, %47 ], [ %13, %32 ]
  ret i32 %52
}

define hidden void @fly_leave(ptr noundef readonly captures(none) %0) local_unnamed_addr #16 {
  %2 = getelementptr inbounds nuw i8, ptr %0, i64 24
  %3 = load ptr, ptr %2, align 8
  %4 = icmp eq ptr %3, null
  br i1 %4, label %8, label %5

5:                                                ; preds = %1
  %6 = getelementptr inbounds nuw i8, ptr %0, i64 32
  %7 = load i64, ptr %6, align 8
  tail call void @fly_device_leave(ptr noundef nonnull %3, i64 noundef %7) #30
  br label %8

8:                                                ; preds = %5, %1
  ret void
}

define hidden noundef i32 @fly_null(ptr noundef readonly captures(none) %0) local_unnamed_addr #3 {
  tail call void @fly_say(ptr noundef %0) #30
  tail call void @fly_say(ptr noundef nonnull @.str.41) #30
  ret i32 2
}

define hidden void @fly_bound(ptr noundef captures(none) %0, ptr noundef initializes((0, 40)) %1, ptr noundef %2, i64 noundef %3, i64 noundef %4, i32 noundef %5) local_unnamed_addr #22 {
  %7 = getelementptr inbounds nuw i8, ptr %0, i64 40
  %8 = load ptr, ptr %7, align 8
  store ptr %8, ptr %1, align 8
  %9 = getelementptr inbounds nuw i8, ptr %1, i64 8
  store ptr %2, ptr %9, align 8
  %10 = getelementptr inbounds nuw i8, ptr %1, i64 16
  store i64 %3, ptr %10, align 8
  %11 = getelementptr inbounds nuw i8, ptr %1, i64 24
  store i64 %4, ptr %11, align 8
  %12 = getelementptr inbounds nuw i8, ptr %1, i64 32
  store i32 %5, ptr %12, align 8
  %13 = getelementptr inbounds nuw i8, ptr %1, i64 36
  store i32 0, ptr %13, align 4
  store ptr %1, ptr %7, align 8
  ret void
}

define hidden i32 @fly_launch(ptr noundef %0, i32 noundef %1, i32 noundef %2, i32 noundef %3, i32 noundef %4, i32 noundef %5, i32 noundef %6, i32 noundef %7, i32 noundef %8, ptr noundef %9, ptr noundef %10, i64 noundef %11) local_unnamed_addr #16 {
  %13 = alloca [6 x i32], align 16
  call void @llvm.lifetime.start.p0(ptr nonnull %13) #28
  store i32 %2, ptr %13, align 16
  %14 = getelementptr inbounds nuw i8, ptr %13, i64 4
  store i32 %3, ptr %14, align 4
  %15 = getelementptr inbounds nuw i8, ptr %13, i64 8
  store i32 %4, ptr %15, align 8
  %16 = getelementptr inbounds nuw i8, ptr %13, i64 12
  store i32 %5, ptr %16, align 4
  %17 = getelementptr inbounds nuw i8, ptr %13, i64 16
  store i32 %6, ptr %17, align 16
  %18 = getelementptr inbounds nuw i8, ptr %13, i64 20
  store i32 %7, ptr %18, align 4
  %19 = getelementptr inbounds nuw i8, ptr %0, i64 24
  %20 = load ptr, ptr %19, align 8
  %21 = icmp eq ptr %20, null
  br i1 %21, label %24, label %22

22:                                               ; preds = %12
  %23 = call i32 @fly_device_launch(ptr noundef nonnull %20, i32 noundef %1, ptr noundef nonnull %13, i32 noundef %8, ptr noundef %9, ptr noundef %10, i64 noundef %11) #30
  br label %27

24:                                               ; preds = %12
  %25 = load ptr, ptr @fly_cpu, align 8
  %26 = call i32 %25(ptr noundef nonnull %0, i32 noundef %1, ptr noundef nonnull %13, i32 noundef %8, ptr noundef %10, i64 noundef %11) #29
  br label %27

27:                                               ; preds = %24, %22
  %28 = phi i32 [ %26, %24 ], [ %23, %22 ]
  %29 = getelementptr inbounds nuw i8, ptr %0, i64 16
  store i32 %28, ptr %29, align 8
  call void @llvm.lifetime.end.p0(ptr nonnull %13) #28
  ret i32 %28
}

declare ptr @dlopen(ptr noundef, i32 noundef) local_unnamed_addr #23

declare ptr @dlerror() local_unnamed_addr #23

declare ptr @dlsym(ptr noundef, ptr noundef) local_unnamed_addr #23

declare i32 @strncmp(ptr noundef captures(none), ptr noundef captures(none), i64 noundef) local_unnamed_addr #5

declare i64 @strcspn(ptr noundef captures(none), ptr noundef captures(none)) local_unnamed_addr #5

declare float @llvm.fabs.f32(float) #24

declare i64 @llvm.smax.i64(i64, i64) #24

declare i64 @llvm.umin.i64(i64, i64) #24

declare i64 @llvm.abs.i64(i64, i1 immarg) #25

declare i32 @llvm.smax.i32(i32, i32) #24

declare ptr @llvm.load.relative.i64(ptr, i64) #26

attributes #0 = { minsize mustprogress nofree norecurse nosync nounwind optsize willreturn memory(write, argmem: none, inaccessiblemem: none, target_mem0: none, target_mem1: none) }
attributes #1 = { mustprogress nocallback nofree nosync nounwind speculatable willreturn memory(none) }
attributes #2 = { minsize mustprogress nofree norecurse nosync nounwind optsize willreturn memory(none) }
attributes #3 = { minsize mustprogress nofree norecurse nounwind optsize willreturn memory(readwrite, inaccessiblemem: none, target_mem0: none, target_mem1: none) }
attributes #4 = { mustprogress nocallback nofree nosync nounwind willreturn memory(argmem: readwrite) }
attributes #5 = { minsize mustprogress nocallback nofree nounwind optsize willreturn memory(argmem: read) }
attributes #6 = { mustprogress nocallback nofree nounwind willreturn memory(argmem: readwrite) }
attributes #7 = { minsize nofree nounwind optsize }
attributes #8 = { minsize nofree nounwind optsize }
attributes #9 = { minsize mustprogress nocallback nofree nounwind optsize willreturn }
attributes #10 = { minsize nofree norecurse nosync nounwind optsize memory(read, argmem: readwrite, inaccessiblemem: none, target_mem0: none, target_mem1: none) }
attributes #11 = { minsize nounwind optsize memory(readwrite, argmem: read, target_mem0: none, target_mem1: none) }
attributes #12 = { minsize mustprogress nofree nounwind optsize willreturn allockind("alloc,zeroed") allocsize(0,1) memory(inaccessiblemem: readwrite) "alloc-family"="malloc" }
attributes #13 = { mustprogress nocallback nofree nounwind willreturn memory(argmem: write) }
attributes #14 = { minsize mustprogress nounwind optsize willreturn allockind("free") memory(argmem: readwrite, inaccessiblemem: readwrite) "alloc-family"="malloc" }
attributes #15 = { minsize mustprogress nofree norecurse nosync nounwind optsize willreturn memory(argmem: write) }
attributes #16 = { minsize nounwind optsize }
attributes #17 = { minsize mustprogress nofree nounwind optsize willreturn allockind("alloc,uninitialized,aligned") allocsize(1) memory(inaccessiblemem: readwrite) "alloc-family"="malloc" }
attributes #18 = { minsize mustprogress nofree norecurse nounwind optsize willreturn memory(argmem: readwrite) }
attributes #19 = { minsize nofree norecurse nosync nounwind optsize memory(readwrite, inaccessiblemem: none, target_mem0: none, target_mem1: none) }
attributes #20 = { minsize nofree nounwind optsize memory(readwrite, target_mem0: none, target_mem1: none) }
attributes #21 = { minsize optsize }
attributes #22 = { minsize mustprogress nofree norecurse nosync nounwind optsize willreturn memory(argmem: readwrite) }
attributes #23 = { minsize nounwind optsize }
attributes #24 = { nocallback nocreateundeforpoison nofree nosync nounwind speculatable willreturn memory(none) }
attributes #25 = { nocallback nofree nosync nounwind speculatable willreturn memory(none) }
attributes #26 = { nocallback nofree nosync nounwind willreturn memory(argmem: read) }
attributes #27 = { minsize nounwind optsize willreturn memory(read) }
attributes #28 = { nounwind }
attributes #29 = { minsize nounwind optsize }
attributes #30 = { minsize optsize }
attributes #31 = { minsize nounwind optsize allocsize(0,1) }
attributes #32 = { minsize nounwind optsize allocsize(1) }

!llvm.module.flags = !{!0, !1}

!0 = !{i32 1, !"wchar_size", i32 4}
!1 = !{i32 8, !"PIC Level", i32 2}
!2 = distinct !{!2, !3}
!3 = !{!"llvm.loop.mustprogress"}
!4 = distinct !{!4, !3}
!5 = distinct !{!5, !3}
!6 = distinct !{!6, !3}
!7 = distinct !{!7, !3}
!8 = distinct !{!8, !3}
!9 = distinct !{!9, !3}
!10 = distinct !{!10, !3}
!11 = distinct !{!11, !3}
!12 = distinct !{!12, !3}
!13 = distinct !{!13, !3}
!14 = distinct !{!14, !3}
!15 = distinct !{!15, !3}
!16 = distinct !{!16, !3}
!17 = distinct !{!17, !3}
!18 = distinct !{!18, !3}
!19 = distinct !{!19, !3}
!20 = distinct !{!20, !3}
!21 = distinct !{!21, !3}
