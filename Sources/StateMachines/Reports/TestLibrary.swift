internal import Relays

#if canImport(Darwin)
    import Darwin
#else
    import Glibc
#endif

/// Which library runs the tests of this process, as far as that can be told without linking one.
enum TestLibrary {
    /// Whether the process runs tests of Swift Testing and of nothing else: SwiftPM starts one process for each library.
    static let isSwiftTestingAlone: Bool = {
        let arguments = CommandLine.arguments
        let program = arguments.first.map { $0.split(separator: "/").last ?? "" } ?? ""
        if program == "swiftpm-testing-helper" { return true }
        return zip(arguments, arguments.dropFirst()).contains { $0 == "--testing-library" && $1 == "swift-testing" }
    }()

    /// `XCTFail(_:file:line:)` of the XCTest in this process; nil when there is none.
    static let fail: (@Sendable (String, StaticString, UInt) -> Void)? = {
        // The name that the compiler gives that function, which is public and so stays as it is.
        let name = "$s6XCTest7XCTFail_4file4lineySS_s12StaticStringVSutF"
        guard let process = dlopen(nil, RTLD_NOW), let function = dlsym(process, name) else { return nil }
        // A function value is the address of its code and of what it captures, which is nothing here. In a struct, so
        // that it is taken as a function of just these types and not of any.
        let found = unsafeBitCast((function, UnsafeRawPointer?.none), to: Failing.self)
        return { found.call($0, $1, $2) }
    }()

    private struct Failing {
        let call: @Sendable (String, StaticString, UInt) -> Void
    }
}

/// Which values dependencies have by default.
public enum DependencyContext: Sendable, Hashable {
    /// Those of the running program.
    case live
    /// Those for tests; one without a value for tests fails the test that uses it.
    case test

    /// Whether this process runs tests.
    static let ofProcess: DependencyContext = TestProcess.isCurrent ? .test : .live
}
