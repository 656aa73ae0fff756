import Foundation
import Testing
import TrebuchetTesting

/// The executable as a user runs it.
@Suite(.timeLimit(.minutes(1))) struct CommandTests {
    private struct Outcome {
        let status: Int32
        let output: String
        let error: String
    }

    private func trebuchet(_ arguments: String...) throws -> Outcome {
        let process = Process()
        process.executableURL = ServeProcess.tool
        process.arguments = arguments
        let output = Pipe()
        let error = Pipe()
        process.standardOutput = output
        process.standardError = error
        try process.run()
        let outputText = String(decoding: output.fileHandleForReading.readDataToEndOfFile(), as: UTF8.self)
        let errorText = String(decoding: error.fileHandleForReading.readDataToEndOfFile(), as: UTF8.self)
        process.waitUntilExit()
        return Outcome(status: process.terminationStatus, output: outputText, error: errorText)
    }

    @Test("an observer in one process prints the change that a call from another one makes")
    func threeProcesses() throws {
        let server = try ServeProcess()
        let observer = Process()
        observer.executableURL = ServeProcess.tool
        observer.arguments = ["observe", "--url", server.url, "todos", "observeState", "--count", "2"]
        let pipe = Pipe()
        observer.standardOutput = pipe
        try observer.run()
        var text = ""
        while !text.contains("\n") { text += String(decoding: pipe.fileHandleForReading.availableData, as: UTF8.self) }
        #expect(text == "{\"todos\":[]}\n")

        let call = try trebuchet("call", "--url", server.url, "todos", "addTodo(title:)", "\"Milk\"")
        #expect(call.status == 0)
        #expect(call.output.contains("\"title\":\"Milk\""))
        let rest = String(decoding: pipe.fileHandleForReading.readDataToEndOfFile(), as: UTF8.self)
        #expect(rest.contains("\"title\":\"Milk\""))
        observer.waitUntilExit()
        #expect(observer.terminationStatus == 0)
        #expect(server.stop() == 0, "SIGTERM drains and exits 0")
    }

    @Test("an error goes to standard error, with exit code 1")
    func errors() throws {
        let server = try ServeProcess()
        defer { server.stop() }
        let unknown = try trebuchet("call", "--url", server.url, "todos", "addTod(title:)", "\"Milk\"")
        #expect(unknown.status == 1)
        #expect(unknown.output.isEmpty)
        #expect(unknown.error.contains("addTodo(title:)"), "it names the methods that there are")
        let text = try trebuchet("call", "--url", server.url, "todos", "addTodo(title:)", "Milk")
        #expect(text.status == 2)
        #expect(text.error.contains("'\"Milk\"'"), "it shows how to quote: \(text.error)")
        let nobody = try trebuchet("observe", "--url", server.url, "nobody", "observeState")
        #expect(nobody.status == 1)
        #expect(nobody.error.contains("nobody"))
        let port = try #require(server.url.split(separator: ":").last)
        let second = try trebuchet("serve", "--port", String(port))
        #expect(second.status == 1)
        #expect(second.error.contains("port \(port) on 127.0.0.1 is in use"))
    }

    @Test("bench relays prints its figures as one JSON object")
    func benchRelays() throws {
        let bench = try trebuchet("bench", "relays", "--readers", "10", "--rounds", "3", "--json")
        #expect(bench.status == 0)
        let figures = try JSONDecoder().decode([String: Double].self, from: Data(bench.output.utf8))
        #expect(figures["readers"] == 10)
        #expect(try #require(figures["relay_update_ns"]) > 0)
        #expect(try #require(figures["current_value_ns"]) > 0)
    }

    @Test("bench qstream prints its figures as one JSON object")
    func benchQStream() throws {
        let bench = try trebuchet("bench", "qstream", "--values", "50", "--json")
        #expect(bench.status == 0)
        let figures = try JSONDecoder().decode([String: Double].self, from: Data(bench.output.utf8))
        #expect(figures["values"] == 50)
        for prefix in ["", "main_"] {
            #expect(try #require(figures[prefix + "qstream_per_second"]) > 0)
            #expect(try #require(figures[prefix + "percent_of_actors"]) > 0)
        }
    }

    @Test("a server that is not there is an error that says what to do")
    func refused() throws {
        let server = try ServeProcess()
        server.stop()
        let call = try trebuchet("call", "--url", server.url, "counter", "increment()")
        #expect(call.status == 1)
        #expect(call.error.contains("trebuchet serve"))
    }

    @Test("help goes to standard output; what is not known is exit code 2 with the nearest match")
    func help() throws {
        #expect(try trebuchet("--help").output.contains("observe"))
        for command in ["serve", "call", "observe", "bench"] {
            let help = try trebuchet(command, "--help")
            #expect(help.status == 0)
            #expect(help.output.contains("usage: trebuchet \(command)"))
        }
        let command = try trebuchet("observ")
        #expect(command.status == 2)
        #expect(command.error.contains("did you mean 'observe'?"))
        let option = try trebuchet("serve", "--prot", "1")
        #expect(option.status == 2)
        #expect(option.error.contains("did you mean --port?"))
    }
}
