import Glibc
import Trebuchet
import TrebuchetServices

/// An administrator at a running server.
struct AdminClient {
    static let options = [
        OptionSpec("--data", "FILE", "the server that keeps its data in this file"),
        OptionSpec("--admin-socket", "PATH", "the server that was started with this --admin-socket"),
    ]

    struct Refused: Error, CustomStringConvertible {
        let description: String
    }

    let link: AdminLink

    init(link: AdminLink) { self.link = link }

    init(_ arguments: ParsedArguments) throws {
        switch (arguments.string("--data"), arguments.string("--admin-socket")) {
        case (_, let path?): link = try .connect(to: path)
        case (let file?, nil): link = try .connect(to: AdminSocket.path(besideData: file))
        case (nil, nil): throw UsageError("name the server: --data FILE or --admin-socket PATH, as it was started with")
        }
    }

    func ask(_ request: AdminRequest) async throws -> AdminAnswer {
        try await send(request)
        return try await answer()
    }

    func send(_ request: AdminRequest) async throws {
        try await link.write(request)
        try await link.flush()
    }

    func answer() async throws -> AdminAnswer {
        guard let answer = try await link.next(AdminAnswer.self) else {
            throw Refused(description: "the server has ended the connection")
        }
        if case .failed(let reason) = answer { throw Refused(description: reason) }
        return answer
    }

    static func unexpected(_ answer: AdminAnswer) -> Refused {
        Refused(description: "the server answered something else; is it of another version?")
    }
}

/// Asks before something is done that cannot be undone.
enum Confirmation {
    static let option = OptionSpec("--yes", nil, "do not ask; needed where nobody can be asked")

    struct Denied: Error, CustomStringConvertible {
        let description = "nothing was done"
    }

    static func ask(_ question: String, _ arguments: ParsedArguments) throws {
        try decide(isSure: arguments.has("--yes"), isTerminal: isatty(STDIN_FILENO) != 0) {
            Console.prompt("\(LogLine.of(question)) y/N ")
            return readLine()
        }
    }

    static func decide(isSure: Bool, isTerminal: Bool, _ answer: () -> String?) throws {
        if isSure { return }
        guard isTerminal else { throw UsageError("this cannot be undone and nobody can be asked: say --yes") }
        guard ["y", "yes"].contains(answer()?.lowercased()) else { throw Denied() }
    }
}
