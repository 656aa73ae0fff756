#if canImport(Foundation)
    package import Foundation

    /// `trebuchet serve`, or another command that listens, in a process of its own on a free port; built beside the tests.
    package final class ServeProcess {
        package let process = Process()
        /// `ws://127.0.0.1:54321`, with TLS `wss:`
        package let url: String

        package struct DidNotStart: Error {
            let output: String
        }

        /// Starts it and waits until it listens.
        package init(command: [String] = ["serve"], arguments: [String] = []) throws {
            process.executableURL = Self.tool
            process.arguments = command + ["--port", "0"] + arguments
            let output = Pipe()
            process.standardOutput = output
            try process.run()
            var text = ""
            while !text.contains("\n") {
                let data = output.fileHandleForReading.availableData
                guard !data.isEmpty else { throw DidNotStart(output: text) }
                text += String(decoding: data, as: UTF8.self)
            }
            guard let range = text.range(of: "wss://") ?? text.range(of: "ws://") else {
                throw DidNotStart(output: text)
            }
            url = String(text[range.lowerBound...].prefix { $0 != " " && $0 != "\n" })
        }

        /// The executable `trebuchet` beside the running test bundle.
        package static var tool: URL {
            let program = (try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/exe")) ?? "."
            return URL(fileURLWithPath: program).deletingLastPathComponent().appendingPathComponent("trebuchet")
        }

        /// Asks it to shut down, and gives its exit code.
        @discardableResult
        package func stop() -> Int32 {
            process.terminate()
            process.waitUntilExit()
            return process.terminationStatus
        }
    }
#endif
