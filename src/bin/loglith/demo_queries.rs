//! What an on-call engineer asks.

/// A question and the query that answers it.
pub(crate) struct DemoQuery {
    pub(crate) question: &'static str,
    pub(crate) query: &'static str,
}

/// In the order in which they are shown.
pub(crate) const QUERIES: &[DemoQuery] = &[
    DemoQuery {
        question: "Which services log most, and how much of it is errors?",
        query: "* | stats by (app) count() rows, count() if (level:error) errors \
                | sort by (rows desc) | limit 6",
    },
    DemoQuery {
        question: "What are the newest errors of all services?",
        query: "level:error | sort by (_time desc) | limit 4 | fields _time, app, _msg",
    },
    DemoQuery {
        question: "Who cannot connect?",
        query: "\"connection refused\" | stats by (app) count() hits | sort by (hits desc) \
                | limit 5",
    },
    DemoQuery {
        question: "Which answers does the web server give, and how large are they?",
        query: "{app=\"nginx\"} | stats by (status) count() requests, sum(bytes) bytes, \
                quantile(0.99, bytes) p99 | sort by (requests desc)",
    },
    DemoQuery {
        question: "Which paths fail?",
        query: "{app=\"nginx\"} status:>=400 | top 5 by (path)",
    },
    DemoQuery {
        question: "Who is guessing passwords on the ssh port?",
        query: "{app=\"sshd\"} \"invalid user\" | stats by (host, _time:1d) count() attempts \
                | sort by (attempts desc) | limit 5",
    },
    DemoQuery {
        question: "What does the cluster warn about?",
        query: "{app=\"k8s-events\"} event.type:=Warning | top 5 by (event.reason)",
    },
    DemoQuery {
        question: "Where did this request go?",
        query: "trace_id:=\"9d001469bf0c71925f35af2b500b3104\" | sort by (_time) \
                | limit 5 | fields _time, app, _msg",
    },
    DemoQuery {
        question: "When did the ticket services fail, in steps of ten minutes?",
        query: "{namespace=\"train-ticket\"} i(error) | stats by (_time:10m) count() hits \
                | sort by (hits desc) | limit 4",
    },
    DemoQuery {
        question: "Which statements of the database are slow?",
        query: "{app=\"postgres\"} duration_ms:>10 | sort by (duration_ms desc) | limit 3 \
                | fields _time, duration_ms, _msg",
    },
    DemoQuery {
        question: "Which services time out?",
        query: "~\"(?i)time(d )?out\" | stats by (app) count() hits, min(_time) first, \
                max(_time) last | sort by (hits desc) | limit 5",
    },
    DemoQuery {
        question: "Did anyone ever see this id? (a needle that is not there)",
        query: "\"00000000deadbeef\" | stats count() hits",
    },
];
