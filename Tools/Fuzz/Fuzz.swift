import Glibc

/// What libFuzzer calls with each input. `FUZZ_TARGET` says which part of the code gets it.
@_cdecl("LLVMFuzzerTestOneInput")
public func fuzzOneInput(_ start: UnsafePointer<UInt8>?, _ count: Int) -> CInt {
    Fuzz.run(Array(UnsafeBufferPointer(start: start, count: count)))
    return 0
}

/// Properties of the code that meets bytes from the network. Each traps when its property does not hold.
enum Fuzz {
    static let targets: [String: @Sendable ([UInt8]) -> Void] = [
        "frames": FrameFuzz.run, "http": HTTPFuzz.run, "envelope": EnvelopeFuzz.run,
        "patch": PatchFuzz.apply, "difference": PatchFuzz.difference, "filter": FilterFuzz.run,
        "resp": RESPFuzz.run,
        "coding": CodingFuzz.run,
    ]

    static let run: @Sendable ([UInt8]) -> Void = {
        let name = getenv("FUZZ_TARGET").map { String(cString: $0) } ?? "frames"
        guard let target = targets[name] else {
            fatalError("no target '\(name)'; there are: \(targets.keys.sorted().joined(separator: ", "))")
        }
        return target
    }()
}
