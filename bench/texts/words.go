package texts

import "strings"

// Word lists of the generated texts.
var (
	names = strings.Fields(`account action active address amount api archive array author balance batch billing body branch browser
		bucket build cache category channel client cluster code color column comment commit config connection content context
		cookie count country created currency customer data database date default deploy description device directory disk
		document domain email enabled endpoint engine entry environment error event expires failed feature field file filter
		flag format function gateway group handler hash header health history host image index input instance interval invoice
		item job key label language latency level limit link list location log machine manager memory message method metric
		mode model module monitor name namespace network node number object offset operation option order origin output owner
		package page parent password path payload payment pending percent permission phone platform plugin policy port price
		priority process product profile project provider proxy query queue rate reason record region registry release remote
		report repository request resource response result retry role route rule runtime sample schedule schema score scope
		search secret section sequence server service session setting shard shipping signal size snapshot source stage start
		state status storage stream string success summary support system table target task template tenant thread threshold
		timeout timestamp title token topic trace traffic transaction type unit update upload uptime url usage user value
		vendor version view volume warehouse warning webhook weight window worker workflow zone`)

	chinese = strings.Fields(`我们 他们 问题 系统 时间 数据 用户 程序 文件 服务 工作 开发 使用 可以 需要 进行 通过 如果 因为 所以 但是 已经
		没有 这个 那个 一个 很多 方法 结果 信息 技术 中国 世界 社会 经济 发展 学习 研究 学生 老师 学校 城市 生活 今天 明天 昨天 现在 以后
		以前 国家 政府 公司 市场 产品 价格 质量 管理 计划 项目 报告 会议 北京 上海 天气 音乐 电影 图书馆 计算机 人工智能 互联网 手机 电话
		网络 安全 密码 账户 登录 注册 错误 警告 成功 失败 开始 结束 运行 停止 更新 删除 添加 修改 查询 显示 设置 选择 确认 取消 保存 打开
		关闭 下载 上传 连接 服务器 数据库 接口 函数 变量 参数 返回 类型 对象 代码 测试 版本 配置 部署 日志 内存 缓存 线程 进程 性能 优化
		设计 模型 训练 语言 文本 图像 声音 分析 处理 算法 结构 理论 实验 科学 历史 文化 艺术 健康 医院 医生 环境 能源 交通 汽车 火车 飞机
		机场 酒店 餐厅 食物 水果 价值 影响 关系 情况 条件 原因 目标 要求 规定 标准 法律 责任 权利 机会 挑战 变化 增加 减少 提高 降低 保护`)

	japanese = strings.Fields(`システム データ ファイル プログラム ユーザー サーバー 時間 問題 情報 方法 結果 設定 変更 削除 追加 確認 表示 実行
		開始 終了 接続 認証 登録 検索 更新 保存 画面 入力 出力 関数 変数 値 文字列 配列 処理 機能 環境 会社 仕事 学校 先生 学生 今日 明日 昨日
		東京 日本 世界 社会 経済 研究 技術 開発 計画 会議 報告書 メール 電話 写真 音楽 映画 料理 天気 電車 飛行機 空港 病院 図書館 言葉 意味
		理由 場所 地図 予定 約束 質問 回答 例 資料 内容 目的 必要 可能性 重要な点 新しいバージョン エラーメッセージ ネットワーク
		データベース インターフェース アプリケーション コンピューター パスワード アカウント ダウンロード テスト サービス プロジェクト
		チーム お客様 担当者 利用者 管理者 開発者 次の手順 以下の項目 すべての値 最初の行 古い記録`)

	russian = strings.Fields(`и в не на что с по это как из у за от для так но если когда только или уже был была были было быть есть
		может можно нужно время года человек люди жизнь день работа работы работе система системы системе данных данные файл
		файла файлы программа программы пользователь пользователя сервер сервера запрос запроса ответ ошибка ошибки значение
		значения функция функции параметр параметры строка строки список таблица таблицы объект метод класс тип количество
		результат результаты проверка тест версия настройка настройки страница документ сообщение сообщения сеть память процесс
		процесса поток потоки ключ доступ пароль права группа список команда команды каталог адрес порт соединение устройство
		размер начало конец часть место дело вопрос слово стороны город страна мир государство власть общество развитие
		возможность условие условия причина пример задача решение решения исследование наука история книга школа университет
		студент дети друг дом улица дорога вода земля солнце погода зима лето вечер утро новый новая новые старый большой
		большая маленький первый второй последний следующий другой каждый важный русский общий главный простой сложный
		сделать говорить сказать знать думать видеть понимать работать использовать создать создаёт получить получает
		находится является содержит выполняется поддерживает позволяет требуется изменить удалить добавить показать`)
)
