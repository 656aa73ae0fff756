package import TrebuchetServices

/// A connection of an administrator to a running server.
package struct AdminClient {
    package static let options = [
        OptionSpec("--data", "FILE", "the server with this data file"),
        OptionSpec("--admin-socket", "PATH", "the server with this admin socket"),
        CommandTimeout.option,
    ]

    /// The error for a request that the server rejected.
    package struct RequestRejected: Error, CustomStringConvertible {
        package let description: String

        package init(description: String) { self.description = description }
    }

    package let link: AdminConnection

    package init(link: AdminConnection) { self.link = link }

    package init(_ arguments: ParsedArguments) throws {
        CommandTimeout.current?.start(awaiting: "connection to the server's admin socket")
        defer { CommandTimeout.current?.stop() }
        switch (arguments.string("--data"), arguments.string("--admin-socket")) {
        case (_, let path?): link = try .connect(to: path)
        case (let file?, nil): link = try .connect(to: AdminSocket.path(forData: file))
        case (nil, nil): throw UsageError("the server is missing: pass its --data FILE or --admin-socket PATH")
        }
    }

    package func request(_ request: AdminRequest) async throws -> AdminResponse {
        try await send(request)
        return try await answer()
    }

    package func send(_ request: AdminRequest) async throws {
        try await link.write(request)
        try await link.flush()
    }

    package func answer() async throws -> AdminResponse {
        CommandTimeout.current?.start(awaiting: "response over the server's admin socket")
        defer { CommandTimeout.current?.stop() }
        guard let answer = try await link.next(AdminResponse.self) else {
            throw RequestRejected(
                description: "the server closed the admin connection; if it has ended, start it again")
        }
        if case .failed(let reason) = answer { throw RequestRejected(description: reason) }
        return answer
    }

    package static func unexpected(_ answer: AdminResponse) -> RequestRejected {
        RequestRejected(description: "unexpected response of the server; use the trebuchet program of its version")
    }
}
