package import TrebuchetServices

/// An administrator at a running server.
package struct AdminClient {
    package static let options = [
        OptionSpec("--data", "FILE", "the server that keeps its data in this file"),
        OptionSpec("--admin-socket", "PATH", "the server that was started with this --admin-socket"),
        CommandTimeout.option,
    ]

    package struct Refused: Error, CustomStringConvertible {
        package let description: String

        package init(description: String) { self.description = description }
    }

    package let link: AdminLink

    package init(link: AdminLink) { self.link = link }

    package init(_ arguments: ParsedArguments) throws {
        CommandTimeout.current?.start(awaiting: "connection to the server's admin socket")
        defer { CommandTimeout.current?.stop() }
        switch (arguments.string("--data"), arguments.string("--admin-socket")) {
        case (_, let path?): link = try .connect(to: path)
        case (let file?, nil): link = try .connect(to: AdminSocket.path(besideData: file))
        case (nil, nil): throw UsageError("name the server: --data FILE or --admin-socket PATH, as it was started with")
        }
    }

    package func ask(_ request: AdminRequest) async throws -> AdminAnswer {
        try await send(request)
        return try await answer()
    }

    package func send(_ request: AdminRequest) async throws {
        try await link.write(request)
        try await link.flush()
    }

    package func answer() async throws -> AdminAnswer {
        CommandTimeout.current?.start(awaiting: "answer over the server's admin socket")
        defer { CommandTimeout.current?.stop() }
        guard let answer = try await link.next(AdminAnswer.self) else {
            throw Refused(description: "the server has ended the connection")
        }
        if case .failed(let reason) = answer { throw Refused(description: reason) }
        return answer
    }

    package static func unexpected(_ answer: AdminAnswer) -> Refused {
        Refused(description: "the server answered something else; is it of another version?")
    }
}
