import Glibc

/// Called by libFuzzer with each input. `FUZZ_TARGET` selects the tested code.
@_cdecl("LLVMFuzzerTestOneInput")
public func fuzzOneInput(_ start: UnsafePointer<UInt8>?, _ count: Int) -> CInt {
    Fuzz.run(Array(UnsafeBufferPointer(start: start, count: count)))
    return 0
}

/// Properties of the code that processes bytes from the network. A violation traps.
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
            fatalError("unknown target '\(name)'; targets: \(targets.keys.sorted().joined(separator: ", "))")
        }
        return target
    }()
}
