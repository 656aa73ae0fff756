internal import Trebuchet

/// Sign-in: each method ends in a new session of an account.
extension Accounts {
    func signInAsGuest(on connection: CallerConnection) async throws(AuthError) -> SessionGrant {
        try await loggingRefusals("to sign in as a guest", connection) { () throws(AuthError) in
            let isGuest = connection.principal?.roles.contains("guest") == true
            try await consumeRate(isGuest ? .attempt : .newGuest, connection)
            try await makeRoom()
            return try await inTurn(of: connection) { transaction throws(AuthError) in
                if let present = try await account(of: connection, in: transaction), present.account.isGuest {
                    return try await beginSession(of: present.id, present.account, on: connection, in: transaction)
                }
                return try await beginSession(
                    of: try await newID(of: Account()), Account(), on: connection, in: transaction)
            }
        }
    }

    // MARK: By a code

    func sendMagicCode(
        to email: String, for connection: CallerConnection
    ) async throws(AuthError) -> SendMagicCodeResponse {
        let address = try MailAddress(email)
        return try await loggingRefusals("to send a code to \(address.text)", connection) { () throws(AuthError) in
            try await sendCode(to: address, .signIn, for: connection)
        }
    }

    func verifyMagicCode(
        email: String, code: String, on connection: CallerConnection
    ) async throws(AuthError) -> SessionGrant {
        let address = try MailAddress(email)
        return try await loggingRefusals("to sign in as \(address.text)", connection) { () throws(AuthError) in
            try await useCode(code, for: address, .signIn, on: connection)
            try await makeRoom()
            return try await inTurn(of: connection) { transaction throws(AuthError) in
                if let owner = try await transaction.owner(ofAddress: address.text),
                    let account = try await transaction.account(owner)
                {
                    return try await beginSession(of: owner, account, on: connection, in: transaction)
                }
                return try await becomeUser(on: connection, in: transaction) { $0.email = address.text }
            }
        }
    }

    /// The purpose of a code; a code is valid for its purpose only.
    enum CodePurpose {
        case signIn
        /// The code makes the address that of an account.
        case address(account: String)

        fileprivate func name(_ address: MailAddress) -> String {
            switch self {
            case .signIn: address.text
            case .address(let account): "\(address.text) \(account)"
            }
        }
    }

    /// Sends a code, within the rates of the caller.
    func sendCode(
        to address: MailAddress, _ purpose: CodePurpose, for connection: CallerConnection
    ) async throws(AuthError) -> SendMagicCodeResponse {
        let host = connection.host
        let name = purpose.name(address)
        try mails.check(host, isCounted: host != nil)
        // Before a rate is taken: a user who waits for room must be able to request a code then.
        try codes.checkRoom(for: name, from: host, at: uptime())
        try await consumeRate(.code(for: address.mailbox), connection)
        try mails.check(host, isCounted: host != nil)
        let mail = try await waitForTurn(toMail: address.mailbox, from: host)
        defer { endMail(mail) }
        let code = Self.newCode()
        let digest = digest(code, name)
        try await addCode(digest, for: name, from: host)
        do {
            try await mailer.send(code, to: address.text)
        } catch {
            await remove(digest, for: name, from: host)
            log.mailFailed("a magic code was not sent: \(error)")
            throw .mailNotSent
        }
        return SendMagicCodeResponse(validSeconds: Int(limits.codeLifetime.wholeMilliseconds / 1000))
    }

    // MARK: Turns of mails

    /// The number of mails that wait for their turn.
    var waitingMailCount: Int { mails.waitingCount }

    /// Returns the number of a mail when it may be handed over; throws when others are preferred.
    private func waitForTurn(toMail address: String, from host: CallerHost?) async throws(AuthError) -> UInt64 {
        let (number, refused) = mails.add(address, from: host)
        if let refused { mailWaiters.removeValue(forKey: refused)?.resume(returning: false) }
        guard refused != number else { throw .limitReached("waitingMails") }
        if mails.next() == number { return number }
        let isNext = await withTaskCancellationHandler {
            await withCheckedContinuation { mailWaiters[number] = $0 }
        } onCancel: {
            Task { await self.cancelMail(number) }
        }
        guard isNext else { throw .limitReached("waitingMails") }
        return number
    }

    private func cancelMail(_ number: UInt64) {
        guard let waiter = mailWaiters.removeValue(forKey: number) else { return }
        mails.remove(number)
        waiter.resume(returning: false)
    }

    private func endMail(_ number: UInt64) {
        mails.remove(number)
        while let next = mails.next() { mailWaiters.removeValue(forKey: next)?.resume(returning: true) }
    }

    /// Uses a code up; throws when it is wrong.
    func useCode(
        _ code: String, for address: MailAddress, _ purpose: CodePurpose, on connection: CallerConnection
    ) async throws(AuthError) {
        let name = purpose.name(address)
        try await consumeRate(.attempt, connection)
        let typed = TypedCode.normalized(code)
        guard TypedCode.isCode(typed) else {
            // A slip of the keyboard is no guess, so it costs no try.
            throw .wrongCode(triesLeft: try await triesLeft(for: name, from: connection.host))
        }
        try await consumeCode(digest(typed, name), for: name, from: connection.host)
        await usedCode(for: address.mailbox, connection)
    }

    /// Returns six uniformly random digits.
    private static func newCode() -> String {
        var generator = SystemRandomNumberGenerator()
        let digits = String(Int.random(in: 0..<1_000_000, using: &generator))
        return String(repeating: "0", count: TypedCode.digits - digits.count) + digits
    }

    /// Includes the purpose, so that equal codes have different digests.
    private func digest(_ code: String, _ name: String) -> [UInt8] {
        Digest.hmacSHA256(Array("\(name)\n\(code)".utf8), key: codeKey)
    }

    // MARK: New sessions

    /// Turns a guest into a user with the same id, or creates a new account for any other caller.
    ///
    /// - Parameter change: makes the account that of a user.
    func becomeUser(
        on connection: CallerConnection, in transaction: AccountTransaction, _ change: (inout Account) -> Void
    ) async throws(AuthError) -> SessionGrant {
        if let present = try await account(of: connection, in: transaction), present.account.isGuest {
            var account = present.account
            change(&account)
            return try await beginSession(of: present.id, account, on: connection, in: transaction)
        }
        var account = Account()
        change(&account)
        return try await beginSession(of: try await newID(of: account), account, on: connection, in: transaction)
    }

    /// Returns the id for a new account; throws at the limits.
    private func newID(of account: Account) async throws(AuthError) -> String {
        try await countAccounts()
        var more = AccountCount()
        more.replace(nil, with: account)
        if let limit = limit(exceededBy: more) { throw .limitReached(limit) }
        while true {
            let id = Base64URL.encode(.random(count: 16))
            // An id must not begin with a dash, because commands would parse it as an option.
            if !id.hasPrefix("-") { return id }
        }
    }

    /// Returns the limit that more accounts would exceed; nil when there is room.
    func limit(exceededBy more: AccountCount) -> String? {
        if more.all > 0, accountCount.all + more.all > limits.accounts { return "accounts" }
        return more.guests > 0 && accountCount.guests + more.guests > limits.guests ? "guests" : nil
    }

    /// Writes the account with a new session, which replaces the session of the connection.
    func beginSession(
        of id: String, _ account: Account, on connection: CallerConnection, in transaction: AccountTransaction
    ) async throws(AuthError) -> SessionGrant {
        let token = RefreshToken.random()
        var account = account
        var changes = AccountRecords.Changes()
        var ended: [(session: String, end: SessionEndReason)] = []
        let old = try await transaction.account(id)
        var label: String?
        if let before = connection.session, let family = try await transaction.family(before) {
            label = family.label
            ended.append((before, .replaced))
            if family.account == id {
                account.sessions.removeAll { $0 == before }
            } else {
                try await remove([before], from: family.account, &changes, in: transaction)
            }
        }
        let family = RefreshTokenFamily(
            account: id, token: token.digest, label: label, at: now(),
            lifetime: limits.sessionLifetime.wholeMilliseconds)
        account.sessions.append(token.session)
        while account.sessions.count > limits.sessionsPerAccount {
            ended.append((account.sessions.removeFirst(), .tooMany))
        }
        for (session, end) in ended { changes.endSession(session, because: end) }
        try changes.set(family, session: token.session)
        try changes.set(account, id: id)
        if let email = account.email {
            _ = try await transaction.owner(ofAddress: email)
            changes.set(owner: id, ofAddress: email)
        }
        for identity in account.identities ?? [] {
            _ = try await transaction.owner(ofIdentity: identity)
            changes.set(owner: id, ofIdentity: identity)
        }
        changes.count.replace(old, with: account)
        // A guest that becomes a user changes for its other sessions too.
        let others = account.sessions.dropLast()
        if let old, old.user(id: id) != account.user(id: id), !others.isEmpty {
            changes.change(account.user(id: id), sessions: Array(others))
        }
        try await write(changes, in: transaction)
        let grant = try grant(account.user(id: id), token, on: connection, in: transaction)
        for (session, end) in ended {
            await connections.endSessions([session], because: end, at: now())
            if end != .replaced { log.ended(session, of: id, end.description) }
        }
        return grant
    }
}
