internal import Relays

#if canImport(Darwin)
    import Darwin
#else
    import Glibc
#endif

/// Detects the test library of this process, as far as possible without linking one.
enum TestLibrary {
    /// True if the process runs only tests of Swift Testing: SwiftPM starts one process for each library.
    static let isSwiftTestingAlone: Bool = {
        let arguments = CommandLine.arguments
        let program = arguments.first.map { $0.split(separator: "/").last ?? "" } ?? ""
        if program == "swiftpm-testing-helper" { return true }
        return zip(arguments, arguments.dropFirst()).contains { $0 == "--testing-library" && $1 == "swift-testing" }
    }()

    /// `XCTFail(_:file:line:)` of the XCTest in this process; nil when there is none.
    static let fail: (@Sendable (String, StaticString, UInt) -> Void)? = {
        // The mangled name of that function, which is public and therefore stable.
        let name = "$s6XCTest7XCTFail_4file4lineySS_s12StaticStringVSutF"
        guard let process = dlopen(nil, RTLD_NOW), let function = dlsym(process, name) else { return nil }
        // A function value consists of the address of its code and of its captures, which are empty here. In a struct,
        // so that it is used as a function of exactly these types.
        let found = unsafeBitCast((function, UnsafeRawPointer?.none), to: Failing.self)
        return { found.call($0, $1, $2) }
    }()

    /// A function that fails a test, in the calling convention of a stored closure.
    private struct Failing {
        let call: @Sendable (String, StaticString, UInt) -> Void
    }
}

/// The source of the default values of dependencies.
public enum DependencyContext: Sendable, Hashable {
    /// The values of the running program.
    case live
    /// The values for tests. A dependency without one fails the test that uses it.
    case test

    /// The context of this process: `.test` if it runs tests.
    static let ofProcess: DependencyContext = TestProcess.isCurrent ? .test : .live
}
