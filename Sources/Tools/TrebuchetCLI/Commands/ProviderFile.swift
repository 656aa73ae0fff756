import Commands
import Glibc
import Platform
import TrebuchetServices
import TrebuchetWire

/// The file of `serve --oidc`: a list of providers.
///
///     [{"provider": "google", "clientID": "….apps.googleusercontent.com"},
///      {"name": "work", "issuer": "https://login.example.org", "audience": ["app", "web"], "keys": "https://…/jwks"}]
enum ProviderFile {
    private static let maximumFileLength = 1 << 20

    static func providers(_ path: String) throws(UsageError) -> [OpenIDProvider] {
        let bytes = try ConfigurationFile.read(path, of: "--oidc", maximum: maximumFileLength)
        do throws(Problem) {
            return try providers(bytes.withoutByteOrderMark)
        } catch {
            throw UsageError("--oidc \(path):\(error.line): \(error.text)")
        }
    }

    /// The error of an invalid file, with its line.
    struct Problem: Error, Equatable {
        let line: Int
        let text: String
    }

    /// A value with the byte offset where it begins.
    private struct Member {
        let offset: Int
        let texts: [String]
        var flag: Bool?
    }

    static func providers(_ bytes: [UInt8]) throws(Problem) -> [OpenIDProvider] {
        var providers: [OpenIDProvider] = []
        var cursorPlace = 0
        func problem(_ offset: Int, _ text: String) -> Problem {
            Problem(line: bytes.prefix(offset).count { $0 == 0x0A } + 1, text: text)
        }
        let entries: [(offset: Int, members: [String: Member])]
        do {
            entries = try bytes.withUnsafeBytes { bytes in
                var json = JSONCursor(bytes)
                defer { cursorPlace = json.at }
                return try read(&json)
            }
        } catch let error as ReadError {
            throw problem(error.offset, error.text)
        } catch {
            throw problem(cursorPlace, "invalid JSON: \(error)")
        }
        for entry in entries {
            let provider: OpenIDProvider
            do throws(MemberError) { provider = try Self.provider(entry.members) } catch {
                let offset = error.member.flatMap { entry.members[$0]?.offset } ?? entry.offset
                throw problem(offset, (error.member.map { "\($0): " } ?? "") + error.text)
            }
            guard !providers.contains(where: { $0.name.utf8.elementsEqual(provider.name.utf8) }) else {
                throw problem(entry.offset, "duplicate provider '\(provider.name)'")
            }
            providers.append(provider)
        }
        return providers
    }

    // MARK: Reading

    /// The error of invalid JSON, with its byte offset.
    private struct ReadError: Error {
        let offset: Int
        let text: String
    }

    private static let known = ["provider", "clientID", "name", "issuer", "audience", "keys", "linksAddresses"]

    private static func read(_ json: inout JSONCursor) throws -> [(offset: Int, members: [String: Member])] {
        var entries: [(offset: Int, members: [String: Member])] = []
        guard json.consume(UInt8(ascii: "[")) else { throw ReadError(offset: json.at, text: "not a list") }
        if !json.consume(UInt8(ascii: "]")) {
            repeat {
                _ = json.peek()
                let offset = json.at
                guard json.peek() == UInt8(ascii: "{") else { throw ReadError(offset: offset, text: "not an object") }
                entries.append((offset, try members(&json)))
            } while json.consume(UInt8(ascii: ","))
            try json.expect(UInt8(ascii: "]"))
        }
        try json.expectEnd()
        return entries
    }

    private static func members(_ json: inout JSONCursor) throws -> [String: Member] {
        var members: [String: Member] = [:]
        try json.expect(UInt8(ascii: "{"))
        var isFirst = true
        while true {
            guard let range = try json.name(&isFirst) else { return members }
            let offset = json.at
            let name = json.text(range)
            guard known.contains(name) else {
                let hint = NearestMatch.find(name, in: known).map { "; did you mean '\($0)'?" } ?? ""
                throw ReadError(offset: offset, text: "unknown member '\(name.prefix(64))'\(hint)")
            }
            guard members[name] == nil else { throw ReadError(offset: offset, text: "\(name): duplicate member") }
            members[name] = try member(name, &json)
        }
    }

    private static func member(_ name: String, _ json: inout JSONCursor) throws -> Member {
        _ = json.peek()
        let offset = json.at
        switch (name, json.peek()) {
        case ("linksAddresses", _):
            let word = String(decoding: json.bytes(try json.value()), as: UTF8.self)
            guard ["true", "false"].contains(word) else {
                throw ReadError(offset: offset, text: "\(name): must be true or false")
            }
            return Member(offset: offset, texts: [], flag: word == "true")
        case (_, UInt8(ascii: "\"")): return Member(offset: offset, texts: [json.text(try json.string())])
        case ("audience", UInt8(ascii: "[")):
            var texts: [String] = []
            try json.expect(UInt8(ascii: "["))
            repeat { texts.append(json.text(try json.string())) } while json.consume(UInt8(ascii: ","))
            try json.expect(UInt8(ascii: "]"))
            return Member(offset: offset, texts: texts)
        default:
            throw ReadError(
                offset: offset, text: "\(name): must be a string\(name == "audience" ? " or a list of strings" : "")")
        }
    }

    // MARK: Validation

    /// The error of an invalid provider, with its member.
    private struct MemberError: Error {
        let member: String?
        let text: String
    }

    private static func provider(_ members: [String: Member]) throws(MemberError) -> OpenIDProvider {
        func text(_ name: String) throws(MemberError) -> String {
            guard let text = members[name]?.texts.first else {
                throw MemberError(member: nil, text: "\(name): not a member of this provider")
            }
            guard !text.isEmpty else { throw MemberError(member: name, text: "must not be empty") }
            return text
        }
        func refuse(_ names: [String], _ reason: String) throws(MemberError) {
            if let name = names.first(where: { members[$0] != nil }) { throw MemberError(member: name, text: reason) }
        }
        var provider: OpenIDProvider
        if members["provider"] != nil {
            try refuse(["name", "issuer", "audience", "keys"], "not allowed with 'provider'")
            switch try text("provider") {
            case "google": provider = .google(clientID: try text("clientID"))
            case "apple": provider = .apple(clientID: try text("clientID"))
            default: throw MemberError(member: "provider", text: "must be 'google' or 'apple'; for others use 'issuer'")
            }
        } else {
            try refuse(["clientID"], "requires 'provider'; for others use 'audience'")
            _ = try text("audience")
            do throws(OpenIDProvider.Problem) {
                provider = try OpenIDProvider(
                    name: members["name"]?.texts.first, issuer: members["issuer"]?.texts.first ?? "",
                    audiences: Set(members["audience"]?.texts ?? []),
                    keys: members["keys"]?.texts.first.map { .url($0) } ?? .discovery)
            } catch {
                let isThere = members[error.member] != nil
                throw MemberError(member: error.member, text: isThere ? error.reason : "not a member of this provider")
            }
        }
        if let flag = members["linksAddresses"]?.flag { provider.linksAccountsByEmail = flag }
        return provider
    }
}
