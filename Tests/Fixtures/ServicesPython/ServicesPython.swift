import Foundation

/// A client of the services in Python, written from Docs/Reference/ServicesProtocol.md, and what runs it.
package enum ServicesPython {
    /// The Python that scripts/test has prepared; it has the package `websockets`.
    package static var interpreter: String {
        ProcessInfo.processInfo.environment["TREBUCHET_PYTHON"] ?? ".build/python/bin/python"
    }

    /// The file of a script of the folder Scripts; nil when there is none.
    package static func path(of script: String) -> String? {
        Bundle.module.path(forResource: script, ofType: "py", inDirectory: "Scripts")
    }
}
